package effective_test

import (
	"fmt"
	"testing"

	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
)

func BenchmarkCompile(b *testing.B) {
	d := effectivetest.Company(5000, 1000, 1000)
	for b.Loop() {
		if _, err := effective.Compile(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, tools := range []int{500, 5000} {
		b.Run(fmt.Sprint("tools=", tools), func(b *testing.B) {
			world, err := effective.Compile(effectivetest.Company(tools, 20, 50))
			if err != nil {
				b.Fatal(err)
			}
			q := effectivetest.CompanyQuestion(noon)
			b.ReportAllocs()
			for b.Loop() {
				for range world.Resolve(q).Withheld() {
				}
			}
		})
	}
}
