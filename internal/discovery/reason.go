package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Reason is why a tool matched.
type Reason struct {
	Kind ReasonKind
	// Of is what matched, as the tool has it: the alias, the keyword, the parameter, the example. Empty for
	// other kinds.
	Of string
	// Words are those of the request that match, as they stand there.
	Words []string
	// Count is how many past requests are alike.
	Count int
	// Message and MessageZH say it for people, in English and in Chinese.
	Message, MessageZH string
}

// ReasonKind is what matched.
type ReasonKind string

// The kinds, in the order in which they are told.
const (
	ReasonAlias       ReasonKind = "ALIAS"       // a title or an alias
	ReasonName        ReasonKind = "NAME"        // what a model sees
	ReasonKeyword     ReasonKind = "KEYWORD"     // a keyword or a domain
	ReasonExample     ReasonKind = "EXAMPLE"     // a request that it is for
	ReasonPast        ReasonKind = "PAST"        // past requests like this one needed it
	ReasonParameter   ReasonKind = "PARAMETER"   // an argument that it takes
	ReasonDescription ReasonKind = "DESCRIPTION" // its description, in any language
	ReasonGroup       ReasonKind = "GROUP"       // its category or MCP server
	ReasonMeaning     ReasonKind = "MEANING"     // a model says that it means the like
	ReasonSpelling    ReasonKind = "SPELLING"    // parts of words
)

// maxReasonsOfField bounds how many aliases, keywords or parameters are told.
const maxReasonsOfField = 3

// reasons tells why a tool matched a request. A word of the request is told where it counts most, once: what
// the name has, the description has as well.
func reasons(q *Text, d *document, f *MatchFeatures) []Reason {
	told := map[string]bool{}
	var all []Reason
	for _, one := range toldFields {
		if one.kind == ReasonParameter && f.Similar > 0 {
			all = append(all, Reason{Kind: ReasonPast, Count: f.Similar})
		}
		all = append(all, fieldReasons(q, d, one.kind, one.field, one.each, told)...)
	}
	if f.Outstanding >= nearMeaning || len(all) == 0 && f.Meaning > 0 {
		all = append(all, Reason{Kind: ReasonMeaning})
	}
	if len(all) == 0 && f.Grams > 0 {
		all = append(all, Reason{Kind: ReasonSpelling})
	}
	for i := range all {
		all[i].Message, all[i].MessageZH = all[i].inWords()
	}
	return all
}

func fieldReasons(q *Text, d *document, kind ReasonKind, f field, each bool, told map[string]bool) []Reason {
	var found []Reason
	for _, text := range d.texts(f, each) {
		words := q.in(text.keys, told)
		if len(words) == 0 {
			continue
		}
		r := Reason{Kind: kind, Words: words}
		if each {
			r.Of = text.name
		}
		found = append(found, r)
	}
	slices.SortStableFunc(found, func(a, b Reason) int { return -cmp.Compare(len(a.Words), len(b.Words)) })
	found = found[:min(len(found), maxReasonsOfField)]
	for _, r := range found {
		for _, word := range r.Words {
			told[word] = true
		}
	}
	return found
}

// toldText is a text of a tool that reasons tell of.
type toldText struct {
	name string   // what it is called: an alias by itself, a parameter by its name
	keys []uint64 // of its words, sorted
}

// toldFields are the fields that reasons tell of, and whether their texts are told one by one.
var toldFields = [...]struct {
	kind  ReasonKind
	field field
	each  bool
}{
	{ReasonAlias, fieldAlias, true}, {ReasonName, fieldName, false}, {ReasonKeyword, fieldKeyword, true}, {ReasonExample, fieldExample, true},
	{ReasonParameter, fieldParameter, true}, {ReasonDescription, fieldDescription, false},
	{ReasonGroup, fieldGroup, false}, {ReasonDescription, fieldServerDescription, false},
}

// texts returns the texts of a field, or all of them as one.
func (d *document) texts(f field, each bool) []toldText {
	if d.lengths[f] == 0 {
		return nil
	}
	known := d.told.Load()
	if known == nil {
		known = &[fieldCount][]toldText{}
		for _, one := range toldFields {
			known[one.field] = d.tool.toldTexts(one.field, one.each)
		}
		d.told.Store(known) // two searches may both make it; they make the same
	}
	return known[f]
}

func (t *Tool) toldTexts(f field, each bool) []toldText {
	texts := t.texts(f)
	names := texts
	switch {
	case f == fieldParameter:
		texts, names = nil, nil
		for _, p := range t.Parameters {
			texts, names = append(texts, p.Name+"\n"+p.Description), append(names, p.Name)
		}
	case !each:
		texts, names = []string{strings.Join(texts, "\n")}, []string{""}
	}
	told := make([]toldText, 0, len(texts))
	for i, text := range texts {
		tokens := tokenize(text, maxFieldTokens)
		keys := make([]uint64, len(tokens))
		for j := range tokens {
			keys[j] = tokens[j].key
		}
		slices.Sort(keys)
		if keys = slices.Clip(slices.Compact(keys)); len(keys) > 0 {
			told = append(told, toldText{names[i], keys})
		}
	}
	return told
}

// in returns the words of the request that a text has and that were not told yet. Of unspaced writing the
// pairs are told, and single characters only if no pair has them.
func (q *Text) in(keys []uint64, told map[string]bool) []string {
	var words, characters []string
	for i := range q.terms {
		t := &q.terms[i]
		_, has := slices.BinarySearch(keys, t.key)
		switch {
		case !has || t.number() || told[t.surface]:
		case t.unigram:
			characters = append(characters, t.surface)
		default:
			words = append(words, t.surface)
		}
	}
	for _, c := range characters {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, c) }) &&
			!slices.ContainsFunc(q.terms, func(t queryTerm) bool { return told[t.surface] && strings.Contains(t.surface, c) }) {
			words = append(words, c)
		}
	}
	return words
}

func (r *Reason) inWords() (english, chinese string) {
	of := quoted(r.Of)
	words, characters := quotedList(r.Words, ", "), quotedList(r.Words, "、")
	switch r.Kind {
	case ReasonAlias:
		return "also called " + of + ": matches " + words, "别名" + of + "匹配" + characters
	case ReasonName:
		return "its name matches " + words, "名称匹配" + characters
	case ReasonKeyword:
		return "keyword " + of + ": matches " + words, "关键词" + of + "匹配" + characters
	case ReasonExample:
		return "an example, " + of + ", matches " + words, "示例" + of + "匹配" + characters
	case ReasonPast:
		if r.Count == 1 {
			return "a similar request needed it", "有1个类似的请求用过它"
		}
		return fmt.Sprintf("%d similar requests needed it", r.Count), fmt.Sprintf("有%d个类似的请求用过它", r.Count)
	case ReasonParameter:
		return "its parameter " + of + " matches " + words, "参数" + of + "匹配" + characters
	case ReasonDescription:
		return "its description matches " + words, "描述匹配" + characters
	case ReasonGroup:
		return "its category or server matches " + words, "类别或服务器匹配" + characters
	case ReasonMeaning:
		return "it means something like it", "含义相近"
	case ReasonSpelling:
		return "parts of words are alike", "部分拼写相近"
	}
	return "", ""
}

// maxQuoted bounds what is quoted of texts of unknown length, in characters.
const maxQuoted = 60

// quoted quotes a text, in short and without what cannot be printed.
func quoted(text string) string {
	runes := []rune(text)
	if len(runes) > maxQuoted {
		runes = append(runes[:maxQuoted-1], '…')
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	return "“" + string(runes) + "”"
}

// quotedList quotes the first few words.
func quotedList(words []string, separator string) string {
	const few = 5
	list := make([]string, 0, few+1)
	for i, word := range words {
		if i == few {
			list = append(list, "…")
			break
		}
		list = append(list, quoted(word))
	}
	return strings.Join(list, separator)
}
