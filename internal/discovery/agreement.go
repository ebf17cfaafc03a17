package discovery

// What one contributor can do to others by past requests is bounded here, besides by what a history keeps of him
// ([HistoryLimits]). The operator's requests, which have no contributor, are not bounded.

// maxVoices is how many of the nearest past requests may be one contributor's: else one alone could keep all others out,
// by asking for many tools in the same words.
const maxVoices = 2

// fewOfEach takes the least like one away from the contributor of a request, if he has too many among the nearest.
func (l *level) fewOfEach(neighbours []neighbour, request uint32) []neighbour {
	contributor := l.past[request].contributor
	if contributor == 0 {
		return neighbours
	}
	voices, last := 0, 0
	for i, n := range neighbours {
		if l.past[n.request].contributor == contributor {
			voices, last = voices+1, i
		}
	}
	if voices > maxVoices {
		copy(neighbours[last:], neighbours[last+1:])
		neighbours = neighbours[:len(neighbours)-1]
	}
	return neighbours
}

// agree lets nobody's voice be louder for having asked in the very words: likeness counts up to that on which two
// contributors agree, which it returns. Where only one contributor's requests are alike (0), the gate opens to
// 1/((1+BackOff)*(Scale+Expansion)) of what it would: as much less as one request makes the history of a tool count less, and
// as what history says may outweigh a tool's own words.
func (l *level) agree(neighbours []neighbour) (agreed float64) {
	if agreed = l.agreed(neighbours); agreed == 0 {
		return 0
	}
	for i := range neighbours {
		neighbours[i].likeness = min(neighbours[i].likeness, agreed)
	}
	return agreed
}

// agreed is how like a request the nearest ones of two contributors are at least, or the nearest one of the operator; 0:
// there is one contributor.
func (l *level) agreed(neighbours []neighbour) float64 {
	first := uint32(0)
	for _, n := range neighbours { // the nearest first
		switch by := l.past[n.request].contributor; {
		case by == 0 || first != 0 && by != first:
			return n.likeness
		case first == 0:
			first = by
		}
	}
	return 0
}

// countAlike counts by slot how many of the nearest past requests are much like this one, in the level that has most of
// them: one and the same may be in that of all users, a group's and the user's own.
func (l *level) countAlike(neighbours []neighbour, counts []int32) {
	alike := 0
	for alike < len(neighbours) && neighbours[alike].likeness >= similar {
		alike++
	}
	for _, n := range neighbours[:alike] {
		for _, t := range l.past[n.request].tools {
			slot := l.slots[t.tool]
			if slot < 0 {
				continue
			}
			count := int32(0)
			for _, other := range neighbours[:alike] {
				for _, of := range l.past[other.request].tools {
					if of.tool == t.tool {
						count++
					}
				}
			}
			counts[slot] = max(counts[slot], count)
		}
	}
}
