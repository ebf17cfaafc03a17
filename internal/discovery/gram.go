package discovery

import "github.com/cespare/xxhash/v2"

// Character n-grams find what words miss: misspelt words, compounds, endings that the stemmer does not know,
// words of languages that it does not know.
const minGram, maxGram = 3, 5

// gramField tells the fields whose n-grams are indexed. Those of parameters would be most of all, and say
// little.
var gramField = [fieldCount]bool{fieldName: true, fieldAlias: true, fieldKeyword: true, fieldDescription: true}

// eachGram calls do with the key of each n-gram of a word, its ends marked: "^cat$" gives "^ca", "cat",
// "at$", "^cat", "cat$" and "^cat$". Single characters and pairs of unspaced writing are such words, too.
func eachGram(term string, do func(uint64)) {
	var space [2*maxTokenRunes + 2]int
	text := "^" + term + "$"
	starts := space[:0]
	for i := range text {
		starts = append(starts, i)
	}
	starts = append(starts, len(text))
	for n := minGram; n <= maxGram; n++ {
		for i := 0; i+n < len(starts); i++ {
			do(xxhash.Sum64String(text[starts[i]:starts[i+n]]))
		}
	}
}
