package effective

import (
	"strings"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// messages words a withheld tool for the user, in English and in Chinese. Of another user's tool nothing is
// told, not even its title.
func (a *Answer) messages(tool uint, w Withheld) (english, chinese string) {
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
		english = en + " is not available to members of " + a.groupTitles(w.Groups, ", ") + "."
		chinese = zh + "不向" + a.groupTitles(w.Groups, "、") + "的成员开放。"
	case ReasonNotOffered:
		if a.question.Surface.IsWeb() {
			english, chinese = en+" is not offered on any of your devices.", "您的设备均不提供"+zh+"。"
		} else {
			english, chinese = en+" is not offered on this device.", "此设备不提供"+zh+"。"
		}
	case ReasonMissingCapability:
		english = en + " cannot be used on this device, which lacks: " + strings.Join(w.MissingCapabilities, ", ") + "."
		chinese = zh + "无法在此设备上使用，因为它缺少：" + strings.Join(w.MissingCapabilities, "、") + "。"
	case ReasonShadowed:
		other := a.world.quoted[a.shadowed[tool]]
		return other.english + " is used instead of " + en + ".", "已改用" + other.chinese + "代替" + zh + "。"
	default:
		return "", ""
	}
	if len(w.Surfaces) > 0 {
		english += " You can use it on: " + surfaceNames(w.Surfaces, "the web", ", ") + "."
		chinese += "您可以在以下位置使用它：" + surfaceNames(w.Surfaces, "网页", "、") + "。"
	}
	if len(w.GrantingGroups) > 0 {
		english += " It is included in: " + a.groupTitles(w.GrantingGroups, ", ") + "."
		chinese += "它包含在：" + a.groupTitles(w.GrantingGroups, "、") + "。"
	}
	return english, chinese
}

// quoted is a tool's title as messages have it.
type quoted struct{ english, chinese string }

// quote makes the quoted titles of all tools: messages need them again and again.
func quote(c *catalog.Snapshot) []quoted {
	all := make([]quoted, c.Len())
	for n := range all {
		tool := c.Tool(uint(n))
		all[n] = quoted{"“" + tool.TitleIn("en") + "”", "“" + tool.TitleIn("zh") + "”"}
	}
	return all
}

func (a *Answer) groupTitles(groups []id.Group, separator string) string {
	titles := make([]string, len(groups))
	for i, name := range groups {
		titles[i] = string(name)
		if g, ok := a.world.Availability.Group(name); ok && g.Title != "" {
			titles[i] = g.Title
		}
	}
	return strings.Join(titles, separator)
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
