package discovery

import (
	"cmp"
	"math"
	"slices"

	"github.com/toolgrant/toolgrant/internal/id"
)

// HistoryLimits bound what a history keeps.
type HistoryLimits struct {
	// Requests of one tool, and in all: of more, the heaviest are kept.
	PerTool, Total int
	// PerContributor bounds the sum of the weights of one contributor's requests of one tool: by making more of
	// them nobody moves anything further.
	PerContributor float64
	// OfContributor bounds the sum of the weights of all requests of one contributor.
	OfContributor float64
}

// DefaultHistoryLimits keeps up to 256 requests of a tool, since more add little, and 65,536 in all. One
// contributor's requests of a tool count like one at most: for a tool that nobody else uses, history counts
// for 1/(1+BackOff) of what it can, a quarter by default. All that one contributor tells, of whatever tools, weighs 64 at
// most, a thousandth of what is kept.
func DefaultHistoryLimits() HistoryLimits {
	return HistoryLimits{PerTool: 256, Total: 65_536, PerContributor: 1, OfContributor: 64}
}

// History is past requests and what they needed, made ready to be compared with others. It never changes. It
// depends on the requests and not on their order.
type History struct {
	tools   []id.Tool // sorted
	weight  []float64 // of each tool's requests together
	lengths []float64 // of each tool's requests, in words, weighted
	average float64   // of the lengths
	words   map[uint64]uint32
	idf     []float64 // by word
	unknown float64   // the idf of a word that is in no request
	logIDF  []float64 // by word
	choice  []float64 // by word: among how many tools it leaves the choice
	byTool  [][]toolWord
	byWord  [][]uint32 // requests that have the word
	past    []pastRequest
	trust   trust
	made    []madeAt  // by time
	own     []float64 // of each tool, how like its requests are to one another
	inverse []float32 // by request: 1 over the length of its vector
}

// toolWord is what the requests of a tool have of a word.
type toolWord struct {
	tool     uint32
	log      float32 // requests with the word, weighted
	centroid float32 // of the mean of the requests' vectors, of length 1
}

type pastRequest struct {
	length      float64 // of its vector
	tools       []toolShare
	contributor uint32 // a number of his; 0: the operator's
}

type toolShare struct {
	tool   uint32
	weight float64
}

// NewHistory makes a history of requests. Of weights, those count that say what a word is worth and how neighbours vote.
func NewHistory(requests []Request, weights *LearnedWeights, limits HistoryLimits) *History {
	h := &History{words: map[uint64]uint32{}}
	kept := keep(requests, limits)
	h.number(kept)
	h.weigh(kept, weights)
	h.fold(kept)
	h.date(kept)
	h.measure(kept, weights)
	return h
}

// Len is how many past requests it keeps.
func (h *History) Len() int { return len(h.past) }

// keep chooses the requests that count, in an order of its own, and bounds contributors.
func keep(requests []Request, limits HistoryLimits) []Request {
	sorted := make([]Request, 0, len(requests))
	for _, r := range requests {
		if r.Weight > 0 && !math.IsInf(r.Weight, 0) && len(r.Features) > 0 && len(r.Tools) > 0 {
			r.Tools = slices.Clone(r.Tools)
			slices.Sort(r.Tools)
			r.Tools = slices.Compact(r.Tools)
			sorted = append(sorted, r)
		}
	}
	slices.SortFunc(sorted, func(a, b Request) int {
		return cmp.Or(-cmp.Compare(a.Weight, b.Weight), slices.Compare(a.Features, b.Features),
			slices.Compare(a.Tools, b.Tools), cmp.Compare(a.Contributor, b.Contributor), a.Time.Compare(b.Time))
	})
	counts := map[id.Tool]int{}
	total := map[contribution]float64{}
	told := map[string]float64{}
	kept := sorted[:0]
	for _, r := range sorted {
		if len(kept) == limits.Total {
			break
		}
		r.Tools = slices.DeleteFunc(r.Tools, func(tool id.Tool) bool {
			return counts[tool] >= limits.PerTool ||
				r.Contributor != "" && total[contribution{r.Contributor, tool}]+r.Weight > limits.PerContributor
		})
		if len(r.Tools) == 0 || r.Contributor != "" && told[r.Contributor]+r.Weight > limits.OfContributor {
			continue
		}
		told[r.Contributor] += r.Weight
		for _, tool := range r.Tools {
			counts[tool]++
			if r.Contributor != "" {
				total[contribution{r.Contributor, tool}] += r.Weight
			}
		}
		kept = append(kept, r)
	}
	return kept
}

type contribution struct {
	contributor string
	tool        id.Tool
}

func (h *History) number(kept []Request) {
	for _, r := range kept {
		h.tools = append(h.tools, r.Tools...)
		for _, word := range r.Features {
			if _, ok := h.words[word]; !ok {
				h.words[word] = uint32(len(h.words))
			}
		}
	}
	slices.Sort(h.tools)
	h.tools = slices.Clip(slices.Compact(h.tools))
	h.past = make([]pastRequest, len(kept))
	h.byWord = make([][]uint32, len(h.words))
	contributors := map[string]uint32{"": 0}
	for i, r := range kept {
		if _, ok := contributors[r.Contributor]; !ok {
			contributors[r.Contributor] = uint32(len(contributors))
		}
		h.past[i].contributor = contributors[r.Contributor]
		h.past[i].tools = make([]toolShare, len(r.Tools))
		for j, tool := range r.Tools {
			number, _ := slices.BinarySearch(h.tools, tool)
			h.past[i].tools[j] = toolShare{uint32(number), r.Weight}
		}
		for _, word := range r.Features {
			n := h.words[word]
			h.byWord[n] = append(h.byWord[n], uint32(i))
		}
	}
}

// weigh finds what each word is worth.
func (h *History) weigh(kept []Request, weights *LearnedWeights) {
	h.idf = make([]float64, len(h.words))
	h.logIDF = make([]float64, len(h.words))
	h.choice = make([]float64, len(h.words))
	h.unknown = math.Log1p(float64(len(kept)))
	among := h.among()
	for word, requests := range h.byWord {
		tools := among(requests)
		h.choice[word] = tools
		h.idf[word] = math.Pow(math.Log1p(float64(len(kept))/float64(len(requests))), 1-weights.ToolRarity) *
			math.Pow(math.Log1p(float64(len(h.tools))/tools), weights.ToolRarity)
		h.logIDF[word] = idf(float64(len(h.tools)), tools)
	}
	h.inverse = make([]float32, len(kept))
	for i, r := range kept {
		sum := 0.0
		for _, word := range r.Features {
			x := h.idf[h.words[word]]
			sum += x * x
		}
		h.past[i].length = math.Sqrt(sum)
		h.inverse[i] = float32(1 / h.past[i].length)
	}
}

// among returns a function that tells among how many tools a word leaves the choice that stands in some requests: all of
// them, if the tools that these needed are spread as those of all requests are; fewer, the more they differ, by the
// information gained (the divergence of Kullback and Leibler, in nats): a word of fifty requests of one tool and of one of
// another says much, though counted it would leave two, and one that goes with the tools that most requests need says
// little. A label that is wrong weighs little, too.
func (h *History) among() func(requests []uint32) float64 {
	usual := make([]float64, len(h.tools))
	total := 0.0
	for i := range h.past {
		for _, share := range h.past[i].tools {
			usual[share.tool] += share.weight
			total += share.weight
		}
	}
	found := make([]float64, len(h.tools)) // weights of requests with the word; all 0 between calls
	var tools []uint32
	return func(requests []uint32) float64 {
		tools = tools[:0]
		sum := 0.0
		for _, i := range requests {
			for _, share := range h.past[i].tools {
				if found[share.tool] == 0 {
					tools = append(tools, share.tool)
				}
				found[share.tool] += share.weight
				sum += share.weight
			}
		}
		gained := 0.0
		for _, tool := range tools {
			gained += found[tool] / sum * math.Log(found[tool]/sum*total/usual[tool])
			found[tool] = 0
		}
		return max(1, float64(len(h.tools))*math.Exp(-max(0, gained)))
	}
}

// fold makes of the requests of each tool its log and its centroid.
func (h *History) fold(kept []Request) {
	h.weight = make([]float64, len(h.tools))
	h.lengths = make([]float64, len(h.tools))
	square := make([]float64, len(h.tools))
	log := make([]float64, len(h.tools))
	mean := make([]float64, len(h.tools))
	h.byTool = make([][]toolWord, len(h.words))
	for i, r := range kept {
		for _, share := range h.past[i].tools {
			h.weight[share.tool] += share.weight
			h.lengths[share.tool] += share.weight * float64(len(r.Features))
		}
	}
	var touched []uint32
	for word, requests := range h.byWord {
		touched = touched[:0]
		for _, i := range requests {
			for _, share := range h.past[i].tools {
				if log[share.tool] == 0 {
					touched = append(touched, share.tool)
				}
				log[share.tool] += share.weight
				mean[share.tool] += share.weight * h.idf[word] / h.past[i].length
			}
		}
		slices.Sort(touched)
		list := make([]toolWord, len(touched))
		for j, tool := range touched {
			list[j] = toolWord{tool, float32(log[tool]), float32(mean[tool])}
			square[tool] += mean[tool] * mean[tool]
			log[tool], mean[tool] = 0, 0
		}
		h.byTool[word] = list
	}
	for _, list := range h.byTool {
		for j := range list {
			list[j].centroid /= float32(math.Sqrt(square[list[j].tool]))
		}
	}
	h.compareOwn(square)
	for _, length := range h.lengths {
		h.average += length
	}
	h.average /= float64(max(len(h.tools), 1))
}

// idf is what a word is worth that so many of all have (Robertson and Spärck Jones, never below 0).
func idf[number int | float64](all, having number) float64 {
	return math.Log1p((float64(all-having) + 0.5) / (float64(having) + 0.5))
}
