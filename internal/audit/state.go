package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// What an entry keeps of an object is bounded, since the log is kept for long.
const (
	maxStateBytes = 64 << 10 // of an object's fields
	maxItemBytes  = 16 << 10 // of the items of a field that was omitted
)

// State is an object as it was at one time. Its JSON is what is stored.
type State struct {
	// Fields are those that are not empty, by their names in the API.
	Fields map[string]json.RawMessage `json:"fields"`
	// Omitted are the largest fields of an object that is too large.
	Omitted []Omitted `json:"omitted,omitempty"`
}

// Omitted is a field that was too large to be kept.
type Omitted struct {
	Field  string `json:"field"`
	Size   int    `json:"size"`   // of its JSON
	SHA256 string `json:"sha256"` // of its JSON, in hex
	// Items of a list are those that the object's other state lacks, the first that fit.
	Items     []string `json:"items,omitempty"`
	ItemCount int      `json:"item_count,omitempty"` // all that the other state lacks
}

// statesOf returns the states of an object before and after a change; of nil there is none.
func statesOf(before, after any) (*State, *State) {
	old, wanted := fieldsOf(before), fieldsOf(after)
	return bounded(old, wanted), bounded(wanted, old)
}

// fieldsOf returns an object's fields but the empty ones.
func fieldsOf(object any) map[string]json.RawMessage {
	if object == nil {
		return nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		panic("audit: " + err.Error()) // domain types always marshal; raw JSON in them was validated
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		panic("audit: " + err.Error())
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool {
		switch string(value) {
		case "null", `""`, "0", "false", "[]", "{}":
			return true
		}
		return false
	})
	return fields
}

// bounded keeps as much of an object as fits: the largest fields go first, but never what it takes to see that
// they were there and whether they differ.
func bounded(fields, other map[string]json.RawMessage) *State {
	if fields == nil {
		return nil
	}
	size := 0
	for name, value := range fields {
		size += len(name) + len(value)
	}
	if size <= maxStateBytes {
		return &State{Fields: fields}
	}
	kept, omitted := maps.Clone(fields), []Omitted(nil)
	largest := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(fields[b]), len(fields[a])), cmp.Compare(a, b))
	})
	for _, name := range largest {
		if size <= maxStateBytes {
			break
		}
		delete(kept, name)
		omitted = append(omitted, omit(name, fields[name], other[name]))
		size -= len(name) + len(fields[name])
	}
	return &State{Fields: kept, Omitted: omitted}
}

// omit tells of a field what there is room for.
func omit(name string, value, other json.RawMessage) Omitted {
	canonical := canonical(value)
	sum := sha256.Sum256(canonical)
	o := Omitted{Field: name, Size: len(canonical), SHA256: hex.EncodeToString(sum[:])}
	if other == nil {
		return o
	}
	there := make(map[string]bool)
	for _, item := range itemsOf(other) {
		there[item] = true
	}
	size := 0
	for _, item := range itemsOf(value) {
		if there[item] {
			continue
		}
		o.ItemCount++
		if size += len(item); size <= maxItemBytes {
			o.Items = append(o.Items, item)
		}
	}
	return o
}

// itemsOf returns a list's items: texts as they are, others as JSON; of what is no list, none.
func itemsOf(value json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	items := make([]string, len(list))
	for i, item := range list {
		if json.Unmarshal(item, &items[i]) != nil {
			items[i] = string(canonical(item))
		}
	}
	return items
}

// canonical is the one form of JSON that differs only in space and in the order of its keys.
func canonical(value json.RawMessage) json.RawMessage {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		panic("audit: " + err.Error()) // it was marshalled just now
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic("audit: " + err.Error())
	}
	return data
}
