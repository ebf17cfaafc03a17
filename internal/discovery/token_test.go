package discovery

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTokenize(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"getWeatherForecast", "get weather forecast"},
		{"get_weather-forecast.v", "get weather forecast"},
		{"HTTPServer parseJSON", "http server pars json"},
		{"converting conversions Converted", "convert convert convert"},
		{"ｆｕｌｌ　Ｗｉｄｔｈ", "full width"},
		{"12 of 340", "# of # 340"},
		{"123456789", "#"},
		{"天气预报", "天 天气 气 气预 预 预报 报"},
		{"查weather吧", "查 weather 吧"},
		{"テスト", "テ テス ス スト ト"},
		{"a x I", ""},
		{"naïve café", "naïv café"},
		{"don't", "don"},
		{"", ""},
	} {
		var terms []string
		for _, token := range tokenize(test.text, 100) {
			terms = append(terms, token.term)
		}
		if got := strings.Join(terms, " "); got != test.want {
			t.Errorf("tokenize(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestFeaturesTellNothingOfOrderAndNumber(t *testing.T) {
	one, other := FeaturesOf("send the mail to the boss"), FeaturesOf("To the boss, the boss: send mail!")
	if !slices.Equal(one, other) {
		t.Errorf("%v and %v", one, other)
	}
}

func FuzzTokenize(f *testing.F) {
	for _, text := range []string{"getWeather 天气 12", "\xff\xfeＡ", "e\u0301te\u0301", "İstanbul ǅ ﷺ", strings.Repeat("aA", 100)} {
		f.Add(text, 20)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, 0), 1000)
		tokens := tokenize(bounded(text), limit)
		if len(tokens) > limit {
			t.Fatalf("%d tokens, limit %d", len(tokens), limit)
		}
		for _, token := range tokens {
			if token.term == "" || utf8.RuneCountInString(token.term) > maxTokenRunes+10 {
				t.Fatalf("term %q", token.term)
			}
			eachGram(token.term, func(uint64) {})
		}
		if !slices.IsSorted(FeaturesOf(text)) {
			t.Fatal("features are not sorted")
		}
	})
}

// How identifiers are written does not matter.
func TestIdentifiersOfAnyStyleAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{2,8}`), 1, 5).Draw(t, "words")
		var camel strings.Builder
		for _, word := range words {
			camel.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		want := tokenize(strings.Join(words, " "), 100)
		for _, text := range []string{strings.Join(words, "_"), strings.Join(words, "-"), strings.Join(words, "."), camel.String()} {
			if got := tokenize(text, 100); !slices.EqualFunc(got, want, func(a, b token) bool { return a.term == b.term }) {
				t.Fatalf("%q gives %v, want %v", text, got, want)
			}
		}
	})
}
