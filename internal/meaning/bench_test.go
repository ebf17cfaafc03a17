package meaning_test

import (
	"fmt"
	"testing"
)

// BenchmarkRestart is how long a server that starts takes to have the vectors of 5,000 shared tools from PostgreSQL.
func BenchmarkRestart(b *testing.B) {
	for _, dimensions := range []int64{384, 1536} {
		b.Run(fmt.Sprint("dimensions=", dimensions), func(b *testing.B) {
			w := build(b, many(5000)...)
			w.model.dimensions.Store(dimensions)
			w.serve().sync()
			size := float64(w.count("generate_series(1, pg_total_relation_size('shared_vectors') >> 20)"))
			w.model.fails.Store(true) // and must not be asked
			for b.Loop() {
				if s := w.serve(); s.Sync(b.Context()) != nil || s.holds() != 5000 {
					b.Fatalf("%+v", s.Stats())
				}
			}
			b.ReportMetric(size, "MiB")
		})
	}
}

// BenchmarkOwn is what a search by a user with 20 private tools adds: when nothing changed, and when he is new here.
func BenchmarkOwn(b *testing.B) {
	w := build(b, many(300)...)
	w.model.dimensions.Store(384)
	tools := many(20)
	for i := range tools {
		tools[i].ID = "ann." + tools[i].ID
	}
	w.own("ann", tools...)
	s := w.serve(w.private)
	s.sync()
	s.syncOwn("ann")
	s.understands("ann", "aa")
	b.Run("held", func(b *testing.B) {
		for b.Loop() {
			s.understands("ann", "aa")
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			fresh := w.serve(w.private)
			b.StartTimer()
			fresh.syncOwn("ann")
		}
	})
}
