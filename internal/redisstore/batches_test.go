package redisstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Who is alone is sent at once; who comes meanwhile waits, unless enough do, who go beside him; a third batch waits for one
// of the two.
func TestTwoBatchesAtATime(t *testing.T) {
	sent, goOn := make(chan int), make(chan struct{})
	var group sync.WaitGroup
	b := batches[int]{send: func(batch []int) {
		sent <- len(batch)
		<-goOn
	}}
	add := func(many int) {
		t.Helper()
		for i := range many {
			if err := b.add(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantSent := func(want int) {
		t.Helper()
		if got := <-sent; got != want {
			t.Fatalf("%d go together, want %d", got, want)
		}
	}
	wantState := func(queued, underWay int) {
		t.Helper()
		if b.queued() != queued || b.sent() != underWay {
			t.Fatalf("%d wait, %d batches are under way; want %d, %d", b.queued(), b.sent(), queued, underWay)
		}
	}
	group.Go(func() { add(1) })
	wantSent(1)
	add(enough - 1)
	wantState(enough-1, 1)
	add(1)
	wantSent(enough)
	add(batchSize + 1)
	wantState(batchSize+1, 2)
	goOn <- struct{}{}
	wantSent(batchSize)
	close(goOn)
	wantSent(1)
	group.Wait()
	b.rests(t)
}

// Whatever comes at whatever time, each is sent, and once.
func TestBatchesSendEachOnce(t *testing.T) {
	const callers, each = 100, 500
	var times [callers * each]atomic.Int32
	var busy, most atomic.Int32
	answered := make([]chan struct{}, callers)
	for i := range answered {
		answered[i] = make(chan struct{}, 1)
	}
	b := batches[int]{send: func(batch []int) {
		now := busy.Add(1)
		for highest := most.Load(); now > highest && !most.CompareAndSwap(highest, now); highest = most.Load() {
		}
		for _, one := range batch {
			times[one].Add(1)
		}
		busy.Add(-1)
		for _, one := range batch {
			answered[one/each] <- struct{}{}
		}
	}}
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				if err := b.add(caller*each + i); err != nil {
					t.Error(err)
					return
				}
				<-answered[caller]
			}
		})
	}
	group.Wait()
	for one := range times {
		if n := times[one].Load(); n != 1 {
			t.Errorf("%d was sent %d times", one, n)
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d batches at a time", most.Load())
	}
	b.rests(t)
}

// rests waits until nothing is under way.
func (b *batches[T]) rests(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); b.sent() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody waits, but batches are under way")
		}
	}
}

func (b *batches[T]) queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// sent is how many batches are under way.
func (b *batches[T]) sent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.underWay
}
