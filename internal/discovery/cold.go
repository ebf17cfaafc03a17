package discovery

// scales are the highest sums over all tools, by which those of a tool are divided.
type scales struct{ words, sentence, grams, meaning, cold float64 }

// cold puts together what needs no history. Sums are divided by the highest of all tools, not of those that
// may be found: what a user may not use does not change the order of what he may.
func (r *Ranker) cold(s *scratch) scales {
	m := scales{words: highest(s.words), sentence: highest(s.sentence), grams: highest(s.grams), meaning: highest(s.meaning)}
	if m.meaning < farMeaning {
		m.meaning = 0 // nothing stands out
	}
	for slot := range s.score {
		if s.words[slot] > 0 || s.grams[slot] > 0 || m.meaning > 0 && s.meaning[slot] >= farMeaning {
			f := r.coldFeatures(uint32(slot), &m, s)
			if s.score[slot] = r.mix(&f, &m); s.score[slot] > m.cold {
				m.cold = s.score[slot]
			}
		}
	}
	if m.cold > 0 {
		inverse := 1 / m.cold
		for slot := range s.score {
			s.score[slot] *= inverse
		}
	}
	return m
}

// coldFeatures are those that make the cold score.
func (r *Ranker) coldFeatures(slot uint32, m *scales, s *scratch) (f MatchFeatures) {
	f.Words = part(s.words[slot], m.words)
	f.Sentence = part(s.sentence[slot], m.sentence)
	f.Grams = part(s.grams[slot], m.grams)
	if s.name[slot] > 0 {
		f.NameCoverage = min(part(s.name[slot], r.nameIDF[slot]), 1)
	}
	if m.meaning > 0 {
		f.Meaning = s.meaningShare(slot, m.meaning, f.Words)
	}
	return f
}

// mix is what these features come to.
func (r *Ranker) mix(f *MatchFeatures, m *scales) float64 {
	words := f.Words
	if m.sentence > 0 {
		words = (words + r.weights.Sentences*f.Sentence) / (1 + r.weights.Sentences)
	}
	return words*(1+r.weights.NameCoverage*f.NameCoverage) + r.weights.Grams*f.Grams + r.weights.Meaning*f.Meaning
}

func highest(xs []float64) float64 {
	most := 0.0
	for _, x := range xs {
		if x > most { // faster than max, which minds NaN
			most = x
		}
	}
	return most
}
