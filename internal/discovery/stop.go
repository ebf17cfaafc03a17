package discovery

import "strings"

// stopWords say nothing of the subject of a request or of what a tool does: articles, pronouns,
// prepositions, auxiliaries, and the words with which one asks ("please show me how"). They are left out
// where words of tools are compared with those of a request, and kept where requests are compared with
// requests: how people ask for a thing is part of what past requests tell.
var stopWords = wordSet(`
	a an the this that these those there here it its he she they them his her their theirs we us our ours
	you your yours i me my mine myself yourself
	of to in on at for from by with about as into through over after before between under up down out off
	and or but nor so if then than no not just also too very once again only own same such
	some any all each every both few more most other
	be is are was were been being am do does did done doing have has had having im ive id ll re ve don doesn isn
	can could will would shall should may might must
	what which who whom whose when where why how
	please help want wants wanted need needs needed like looking look able know let get give tell show
	hi hello hey thanks thank
	use using used via provide provides provided providing return returns returned given
	specified specific based etc eg ie
`)

// stopCharacters are their like in Chinese. Pairs of characters are always kept.
var stopCharacters = characterSet("的了我是在你请吗呢吧啊这那有和与就也都要想把被给帮个们一")

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

func characterSet(characters string) map[string]bool {
	set := map[string]bool{}
	for _, one := range characters {
		set[string(one)] = true
	}
	return set
}
