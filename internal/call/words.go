package call

import (
	"strings"
	"unicode"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// quoted quotes a text of unknown origin, without what cannot be printed.
func quoted(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return '?'
		}, text)
	}
	return "“" + text + "”"
}

// title is the quoted title of a tool.
func title(t *catalog.Tool, language string) string { return "“" + t.TitleIn(language) + "”" }

// refuse is a refusal without a next step.
func (a *Answer) refuse(reason Reason, english, chinese string) {
	a.Decision, a.Reason, a.Message, a.MessageZH = Deny, reason, english, chinese
}
