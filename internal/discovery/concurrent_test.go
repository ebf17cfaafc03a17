package discovery

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Searches on an index and changes of it do not disturb one another (run with -race).
func TestSearchWhileTheIndexChanges(t *testing.T) {
	r := ranker(office(t), remembered("what is it like outside", "weather.current"))
	query := Query{Text: "get the weather. Then read a file in 北京", Limit: 10, Reasons: true}
	want := r.Search(query)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 100 {
				if got := r.Search(query); !reflect.DeepEqual(got, want) {
					t.Errorf("%+v\nwant %+v", got, want)
					return
				}
			}
		})
	}
	for worker := range 2 {
		wait.Go(func() {
			index := r.Index()
			for i := range 50 {
				tool := Tool{ID: id.Tool(fmt.Sprintf("new-%d-%d", worker, i)), Name: fmt.Sprintf("weather_of_planet%c", 'a'+rune(i%26)), Descriptions: []string{"read the weather 北京"}}
				index = index.With([]Tool{tool}, []id.Tool{"weather.current"})
				// Searchable at once.
				matches := NewRanker(index, DefaultWeights()).find(tool.Name)
				if place(matches, tool.ID) < 0 || place(matches, "weather.current") >= 0 {
					t.Errorf("%s: found %v", tool.Name, found(matches))
					return
				}
			}
		})
	}
	wait.Wait()
}
