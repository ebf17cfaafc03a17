package meaning

import (
	"context"
	"slices"
)

// want is a text that needs a vector, and of which tool it is.
type want struct {
	Stored // without the vector
	text   string
}

func printsOf(wanted []want) []Fingerprint {
	prints := make([]Fingerprint, len(wanted))
	for i := range wanted {
		prints[i] = wanted[i].Fingerprint
	}
	return prints
}

// ask asks the store.
func (k *Keeper) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := question(ctx)
	if err != nil {
		k.storeFailures.Add(1)
	}
	return err
}

// read returns what is stored and can be used. What is stored and is no vector is deleted, so that it is asked for anew.
func (k *Keeper) read(ctx context.Context, vault Vault, prints []Fingerprint) (found []Stored, err error) {
	var broken []Stored
	for group := range slices.Chunk(prints, readBatch) {
		if err = k.ask(ctx, func(ctx context.Context) error {
			rows, err := vault.Read(ctx, group)
			for _, row := range rows {
				if usable(row.Vector) {
					found = append(found, row)
				} else {
					broken = append(broken, row)
				}
			}
			return err
		}); err != nil {
			break
		}
	}
	if len(broken) > 0 && err == nil {
		k.broken.Add(uint64(len(broken)))
		err = k.ask(ctx, func(ctx context.Context) error { return vault.Drop(ctx, broken) })
	}
	found = k.ofOneModel(found)
	k.loaded.Add(uint64(len(found)))
	return found, err
}

// ofOneModel leaves those that have as many dimensions as the model's answers. Before its first one, it is taken for the
// model of most of them.
func (k *Keeper) ofOneModel(found []Stored) []Stored {
	if k.dimensions.Load() == 0 && len(found) > 0 {
		counts, most := map[int]int{}, 0
		for _, one := range found {
			counts[len(one.Vector)]++
		}
		for dimensions, n := range counts {
			if n > counts[most] || n == counts[most] && dimensions < most {
				most = dimensions
			}
		}
		k.dimensions.CompareAndSwap(0, int64(most))
	}
	dimensions := int(k.dimensions.Load())
	return slices.DeleteFunc(found, func(one Stored) bool { return len(one.Vector) != dimensions })
}

// fetch has vectors made that nobody else is asking for, many at a time, and stored. take is given them as they come, and
// told whether they are stored. busy is how many others are asking for.
func (k *Keeper) fetch(ctx context.Context, vault Vault, wanted []want, take func(vectors []Stored, stored bool)) (busy int, err error) {
	for group := range slices.Chunk(wanted, batch) {
		mine, err := k.claim(ctx, group)
		if err != nil {
			return busy, err
		}
		busy += len(group) - len(mine)
		if len(mine) == 0 {
			continue
		}
		if err := k.make(ctx, vault, mine, take); err != nil {
			k.release(ctx, mine)
			return busy, err
		}
	}
	return busy, nil
}

// claim takes the task to ask for some, and returns which of them it got.
func (k *Keeper) claim(ctx context.Context, wanted []want) (mine []want, err error) {
	err = k.ask(ctx, func(ctx context.Context) error {
		claimed, err := k.o.Store.ClaimVectors(ctx, k.claimant, printsOf(wanted), lease)
		mine = slices.DeleteFunc(slices.Clone(wanted), func(w want) bool { return !slices.Contains(claimed, w.Fingerprint) })
		return err
	})
	return mine, err
}

// release gives back what was claimed, also when the server ends. What that fails for is free when its lease is over.
func (k *Keeper) release(ctx context.Context, mine []want) {
	_ = k.ask(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return k.o.Store.ReleaseVectors(ctx, k.claimant, printsOf(mine))
	})
}

// make asks the model for what was claimed, but for what others stored just before: they do that and give back their
// claims at once, so whoever claims something afterwards finds it.
func (k *Keeper) make(ctx context.Context, vault Vault, mine []want, take func([]Stored, bool)) error {
	found, err := k.read(ctx, vault, printsOf(mine))
	if err != nil {
		return err
	}
	take(found, true)
	missing := slices.DeleteFunc(slices.Clone(mine), func(w want) bool {
		return slices.ContainsFunc(found, func(s Stored) bool { return s.Fingerprint == w.Fingerprint })
	})
	if len(missing) > 0 {
		made, err := k.embed(ctx, missing)
		if err != nil {
			return err
		}
		err = k.ask(ctx, func(ctx context.Context) error { return vault.Add(ctx, k.claimant, k.o.Model, made) })
		take(made, err == nil)
		if err != nil {
			return err
		}
	}
	if len(missing) < len(mine) {
		k.release(ctx, mine)
	}
	return nil
}

// embed asks the model.
func (k *Keeper) embed(ctx context.Context, missing []want) ([]Stored, error) {
	made, texts := make([]Stored, len(missing)), make([]string, len(missing))
	for i := range missing {
		made[i], texts[i] = missing[i].Stored, missing[i].text
	}
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	vectors, err := k.o.Embedder.Embed(ctx, texts)
	if err != nil {
		k.unmade.Add(uint64(len(missing)))
		return nil, err
	}
	k.tell(vectors[0])
	k.made.Add(uint64(len(made)))
	for i := range made {
		made[i].Vector = vectors[i]
	}
	return made, nil
}
