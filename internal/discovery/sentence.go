package discovery

import "strings"

// sentenceEnd finds where the first sentence of a text ends and what comes after that begins: at a mark that is followed
// by white space, at a Chinese one, at a line's end, and where a further step is joined on with a comma. It returns -1 if
// the text is one sentence.
func sentenceEnd(text string) (end, next int) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return i, i + 1
		case c == '.' || c == '?' || c == '!' || c == ';':
			if i+1 < len(text) && spaceByte(text[i+1]) {
				return i, i + 2
			}
		case c == ',':
			if strings.HasPrefix(text[i:], ", and ") {
				return i, i + len(", and ")
			}
		case c >= 0x80:
			for _, mark := range [...]string{"。", "？", "！", "；", "，"} {
				if strings.HasPrefix(text[i:], mark) {
					return i, i + len(mark)
				}
			}
		}
	}
	return -1, -1
}

func spaceByte(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' }
