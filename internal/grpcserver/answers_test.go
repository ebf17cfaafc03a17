package grpcserver

import (
	"fmt"
	"testing"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// What an answer costs that was not made before.
func BenchmarkNewAnswer(b *testing.B) {
	for _, tools := range []int{500, 5000} {
		b.Run(fmt.Sprint("tools=", tools), func(b *testing.B) {
			world, err := effective.Compile(effectivetest.Company(tools, 20, 50))
			if err != nil {
				b.Fatal(err)
			}
			q := effectivetest.CompanyQuestion(time.Now())
			f := replica.Facts{Facts: effective.Facts{World: world, User: q.User}}
			answers := NewAnswers(1 << 20)
			var a *answer
			b.ReportAllocs()
			for b.Loop() {
				if a, err = answers.make(b.Context(), &f, &q, toolgrantv1.ToolView_TOOL_VIEW_BASIC); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(a.body)), "answer-bytes")
		})
	}
}
