package effective

import (
	"slices"
	"strings"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// messages words a withheld tool for the user, in English and in Chinese. Of another user's tool nothing is
// told, not even its title.
func (a *Answer) messages(tool uint, w *Withheld) (english, chinese string) {
	en, zh := a.world.quoted[tool].english, a.world.quoted[tool].chinese
	if a.Availability.Foreign.Test(tool) {
		en, zh = "This tool", "此工具"
	}
	switch w.Reason {
	case ReasonRetired:
		return en + " has been retired and can no longer be used.", zh + "已停用，无法再使用。"
	case ReasonTypeDisabled:
		return en + " is switched off for everybody at the moment. Please try again later.",
			zh + "目前已对所有人关闭，请稍后再试。"
	case ReasonOwnedByOther:
		return en + " is another user's private tool.", zh + "是其他用户的私有工具。"
	case ReasonRevokedByGroup:
		revoking, granting := a.groupsInWords(w.Groups), a.including(w.GrantingGroups)
		return en + " is not available to members of " + revoking.english + "." + granting.english,
			zh + "不向" + revoking.chinese + "的成员开放。" + granting.chinese
	case ReasonNotOffered:
		where, granting := a.usableOn(w.Surfaces), a.including(w.GrantingGroups)
		if a.question.Surface.IsWeb() {
			return en + " is not offered on any of your devices." + where.english + granting.english,
				"您的设备均不提供" + zh + "。" + where.chinese + granting.chinese
		}
		return en + " is not offered on this device." + where.english + granting.english,
			"此设备不提供" + zh + "。" + where.chinese + granting.chinese
	case ReasonMissingCapability:
		where := a.usableOn(w.Surfaces)
		return en + " cannot be used on this device, which lacks: " + strings.Join(w.MissingCapabilities, ", ") + "." + where.english,
			zh + "无法在此设备上使用，因为它缺少：" + strings.Join(w.MissingCapabilities, "、") + "。" + where.chinese
	case ReasonQuarantined:
		return en + " was changed by its MCP server. It can be used again once an operator has approved that.",
			zh + "已被其 MCP 服务器更改，须经管理员批准后才能继续使用。"
	case ReasonShadowed:
		other := a.world.quoted[a.shadowed[tool]]
		return other.english + " is used instead of " + en + ".", "已改用" + other.chinese + "代替" + zh + "。"
	default:
		return "", ""
	}
}

// quote makes the quoted titles of all tools: messages need them again and again.
func quote(c *catalog.Snapshot) []words {
	all := make([]words, c.Len())
	for n := range all {
		tool := c.Tool(uint(n))
		all[n] = words{"“" + tool.TitleIn("en") + "”", "“" + tool.TitleIn("zh") + "”"}
	}
	return all
}

// words say something in both languages.
type words struct{ english, chinese string }

// worded is a list, in words.
type worded[T comparable] struct {
	list []T
	words
	sentence words // that has the words
}

// inWords returns a list in words, which it makes only once. The list must not be kept by its maker.
func inWords[T comparable](known *[]worded[T], list []T, word func([]T) worded[T]) *worded[T] {
	for i := range *known {
		if one := &(*known)[i]; slices.Equal(one.list, list) {
			return one
		}
	}
	*known = append(*known, word(slices.Clone(list)))
	return &(*known)[len(*known)-1]
}

// usableOn is the sentence that says on which other surfaces a tool can be used, if there are any.
func (a *Answer) usableOn(surfaces []availability.Surface) words {
	return a.surfacesInWords(surfaces).sentence
}

func (a *Answer) surfacesInWords(surfaces []availability.Surface) *worded[availability.Surface] {
	return inWords(&a.surfaces, surfaces, func(surfaces []availability.Surface) worded[availability.Surface] {
		w := worded[availability.Surface]{list: surfaces}
		if len(surfaces) > 0 {
			w.words = words{surfaceNames(surfaces, "the web", ", "), surfaceNames(surfaces, "网页", "、")}
			w.sentence = words{" You can use it on: " + w.english + ".", "您可以在以下位置使用它：" + w.chinese + "。"}
		}
		return w
	})
}

// including is the sentence that says which groups grant a tool, if there are any.
func (a *Answer) including(groups []id.Group) words { return a.groupsInWords(groups).sentence }

func (a *Answer) groupsInWords(groups []id.Group) *worded[id.Group] {
	return inWords(&a.groups, groups, func(groups []id.Group) worded[id.Group] {
		w := worded[id.Group]{list: groups}
		if len(groups) > 0 {
			titles := a.groupTitles(groups)
			w.words = words{strings.Join(titles, ", "), strings.Join(titles, "、")}
			w.sentence = words{" It is included in: " + w.english + ".", "它包含在：" + w.chinese + "。"}
		}
		return w
	})
}

func (a *Answer) groupTitles(groups []id.Group) []string {
	titles := make([]string, len(groups))
	for i, name := range groups {
		titles[i] = string(name)
		if g, ok := a.world.Availability.Group(name); ok && g.Title != "" {
			titles[i] = g.Title
		}
	}
	return titles
}

func surfaceNames(surfaces []availability.Surface, web, separator string) string {
	names := make([]string, len(surfaces))
	for i, s := range surfaces {
		names[i] = string(s.Device)
		if s.IsWeb() {
			names[i] = web
		}
	}
	return strings.Join(names, separator)
}
