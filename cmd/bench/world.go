package main

import (
	"fmt"
	"iter"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// world is a generated world. Every object depends on the seed, the sizes and its own number only, so that any
// of them can be made when it is needed, and the world is never in memory as a whole.
type world struct {
	sizes
	seed uint64
}

// kind tells the random numbers of one kind of object from those of another.
type kind uint64

const (
	kindToolType kind = iota
	kindTool
	kindDeviceType
	kindGroup
	kindAvatar
	kindUser
	kindChat
	kindQuestion
	kindRound
	kindWatcher
	kindPause
)

// random returns the random numbers of an object.
func (w *world) random(k kind, number int) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, uint64(k)<<56|uint64(number)))
}

// catalogue is all but the users, a manifest per object, what is referred to first.
func (w *world) catalogue() iter.Seq[*toolgrantv1.Manifest] {
	return func(yield func(*toolgrantv1.Manifest) bool) {
		sections := []struct {
			count int
			make  func(int) *toolgrantv1.Manifest
		}{
			{w.toolTypes(), func(i int) *toolgrantv1.Manifest {
				return &toolgrantv1.Manifest{ToolTypes: []*toolgrantv1.ToolType{w.toolType(i)}}
			}},
			{w.tools, func(i int) *toolgrantv1.Manifest {
				return &toolgrantv1.Manifest{Tools: []*toolgrantv1.Tool{w.tool(i)}}
			}},
			{w.deviceTypes, func(i int) *toolgrantv1.Manifest {
				return &toolgrantv1.Manifest{DeviceTypes: []*toolgrantv1.DeviceType{w.deviceType(i)}}
			}},
			{w.groups, func(i int) *toolgrantv1.Manifest {
				return &toolgrantv1.Manifest{Groups: []*toolgrantv1.Group{w.group(i)}}
			}},
			{w.avatars, func(i int) *toolgrantv1.Manifest {
				return &toolgrantv1.Manifest{Avatars: []*toolgrantv1.Avatar{w.avatar(i)}}
			}},
			{1, func(int) *toolgrantv1.Manifest {
				return &toolgrantv1.Manifest{DefaultAvatars: []*toolgrantv1.DefaultAvatar{{AvatarId: avatarID(0)}}}
			}},
		}
		for _, section := range sections {
			for i := range section.count {
				if !yield(section.make(i)) {
					return
				}
			}
		}
	}
}

// Limits of a manifest that is sent in one request.
const (
	batchObjects = 1_000
	batchBytes   = 4 << 20
)

// batches joins manifests into fewer that are still fit to be sent.
func batches(objects iter.Seq[*toolgrantv1.Manifest]) iter.Seq2[int, *toolgrantv1.Manifest] {
	return func(yield func(int, *toolgrantv1.Manifest) bool) {
		batch, count, bytes := &toolgrantv1.Manifest{}, 0, 0
		for object := range objects {
			size := proto.Size(object)
			if count == batchObjects || count > 0 && bytes+size > batchBytes {
				if !yield(count, batch) {
					return
				}
				batch, count, bytes = &toolgrantv1.Manifest{}, 0, 0
			}
			proto.Merge(batch, object)
			count, bytes = count+1, bytes+size
		}
		if count > 0 {
			yield(count, batch)
		}
	}
}

// toolTypes is how many types there are: most have one tool, every fourth has two tiers.
func (w *world) toolTypes() int { return w.tools - w.tools/5 }

// typeOf returns the type of a tool, and whether the tool is its better tier.
func (w *world) typeOf(tool int) (toolType int, pro bool) {
	if tool < w.toolTypes() {
		return tool, false
	}
	return tool - w.toolTypes(), true
}

// isCore tells whether a tool is always enabled: about one in a hundred is.
func (w *world) isCore(tool int) bool { return tool < w.toolTypes() && tool%80 == 0 }

var (
	verbs        = []string{"create", "find", "update", "delete", "share", "summarize", "translate", "export", "schedule", "compare"}
	nouns        = []string{"invoices", "meetings", "documents", "photos", "recipes", "flights", "songs", "reminders", "contacts", "orders", "tickets", "reports"}
	capabilities = []string{"display", "speaker", "microphone", "camera", "location", "keyboard", "printer", "notifications"}
)

// words returns what the tools of a type do, and to what.
func words(toolType int) (verb, noun string) {
	return verbs[toolType%len(verbs)], nouns[toolType/len(verbs)%len(nouns)]
}

func (w *world) toolID(tool int) string {
	toolType, pro := w.typeOf(tool)
	if pro {
		return toolTypeID(toolType) + ".pro"
	}
	return toolTypeID(toolType) + ".basic"
}

func toolTypeID(i int) string {
	verb, noun := words(i)
	return fmt.Sprintf("%s_%s_%d", verb, noun, i)
}

func deviceTypeID(i int) string { return fmt.Sprintf("device-type-%d", i) }
func groupID(i int) string      { return fmt.Sprintf("group-%d", i) }
func avatarID(i int) string     { return fmt.Sprintf("avatar-%d", i) }

func (w *world) toolType(i int) *toolgrantv1.ToolType {
	r := w.random(kindToolType, i)
	verb, noun := words(i)
	t := &toolgrantv1.ToolType{ToolTypeId: toolTypeID(i), Title: fmt.Sprintf("%s %s %d", verb, noun, i),
		Source: toolgrantv1.ToolSource_TOOL_SOURCE_NATIVE}
	if r.IntN(4) == 0 {
		t.Source = toolgrantv1.ToolSource_TOOL_SOURCE_INTERNAL_MCP
	}
	if r.IntN(5) == 0 {
		t.ConfigSchema = &structpb.Struct{Fields: map[string]*structpb.Value{
			"type": structpb.NewStringValue("object"),
			"properties": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
				"max_results": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
					"type": structpb.NewStringValue("integer"), "minimum": structpb.NewNumberValue(1)}})}}),
			"additionalProperties": structpb.NewBoolValue(false)}}
	}
	return t
}

func (w *world) tool(i int) *toolgrantv1.Tool {
	r := w.random(kindTool, i)
	toolType, pro := w.typeOf(i)
	verb, noun := words(toolType)
	results := 5 + r.IntN(45)
	t := &toolgrantv1.Tool{ToolId: w.toolID(i), ToolTypeId: toolTypeID(toolType), Name: toolTypeID(toolType),
		Title: fmt.Sprintf("%s %s %d", verb, noun, toolType), Category: noun, Core: w.isCore(i),
		Description: fmt.Sprintf("Lets you %s %s that the user can see. Call it when the user names the %s, or a period and a person; "+
			"ask first if that is unclear. Returns id, title and state of each, at most %d at a time.", verb, noun, noun, results),
		Config: &structpb.Struct{Fields: map[string]*structpb.Value{"max_results": structpb.NewNumberValue(float64(results))}}}
	if pro {
		t.Title, t.Precedence = t.Title+" Pro", 10
	}
	switch risk := r.IntN(20); {
	case risk == 0:
		t.Risk = toolgrantv1.ToolRisk_TOOL_RISK_HIGH
	case risk < 4:
		t.Risk = toolgrantv1.ToolRisk_TOOL_RISK_MEDIUM
	}
	if r.IntN(5) == 0 {
		t.RequiredCapabilities = []string{capabilities[r.IntN(len(capabilities))]}
	}
	return t
}

func (w *world) deviceType(i int) *toolgrantv1.DeviceType {
	r := w.random(kindDeviceType, i)
	t := &toolgrantv1.DeviceType{DeviceTypeId: deviceTypeID(i), Title: fmt.Sprintf("Device type %d", i),
		ToolIds: w.someTools(r, w.toolsPerDeviceType)}
	for _, c := range r.Perm(len(capabilities))[:2+r.IntN(5)] {
		t.Capabilities = append(t.Capabilities, capabilities[c])
	}
	return t
}

// group grants a twentieth of the tools and revokes a fiftieth. Some groups are of one priority.
func (w *world) group(i int) *toolgrantv1.Group {
	r := w.random(kindGroup, i)
	return &toolgrantv1.Group{GroupId: groupID(i), Title: fmt.Sprintf("Group %d", i), Priority: int32(i % 3 * 10),
		GrantToolIds: w.someTools(r, min(w.tools/20, maxIDs)), RevokeToolIds: w.someTools(r, min(w.tools/50, maxIDs))}
}

func (w *world) avatar(i int) *toolgrantv1.Avatar {
	return &toolgrantv1.Avatar{AvatarId: avatarID(i), Title: fmt.Sprintf("Avatar %d", i),
		ToolIds: w.someTools(w.random(kindAvatar, i), w.toolsPerAvatar)}
}

// someTools returns so many different tools.
func (w *world) someTools(r *rand.Rand, count int) []string {
	tools := make([]string, count)
	for i, tool := range r.Perm(w.tools)[:count] {
		tools[i] = w.toolID(tool)
	}
	return tools
}
