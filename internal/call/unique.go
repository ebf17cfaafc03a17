package call

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// maxUniqueName is what model providers take.
const maxUniqueName = 64

// separator stands between a tool's name and a function in a unique name.
const separator = "__"

// UniqueName is a name under which a function of an external MCP server is the only one among the tools that a model
// may be given together. It is TOOL__FUNCTION wherever that is a name of at most 64 of the characters A-Z a-z 0-9 _ -
// and can be read in one way only: the tool's name has no "__" in it and does not end in "_", so the first "__" ends
// it. Otherwise it is TOOL_DIGEST__FUNCTION: both names as they can be said in the room that is left, and twelve
// characters of the digest of both in full, of 60 bits. So the name depends on nothing but the two names, and stays
// whatever else changes in the catalogue; and a server, which chooses its functions' names, but not its tool's,
// cannot choose one that is read as a function of another tool.
func UniqueName(tool, function string) string {
	if readable(tool) && readable(function) && !strings.Contains(tool, separator) && !strings.HasSuffix(tool, "_") &&
		len(tool)+len(separator)+len(function) <= maxUniqueName {
		return tool + separator + function
	}
	const digestLength, room = 12, maxUniqueName - 12 - len("_") - len(separator)
	sum := sha256.Sum256([]byte(strconv.Itoa(len(tool)) + ":" + tool + function))
	digest := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:digestLength])
	head, tail := sayable(tool), sayable(function)
	head = strings.TrimRight(head[:min(len(head), max(room/2, room-len(tail)))], "_")
	tail = tail[:min(len(tail), room-len(head))]
	return head + "_" + digest + separator + tail
}

// readable tells whether a name is of the characters that all model providers take.
func readable(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return !sayableRune(r) }) < 0
}

func sayableRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// sayable replaces what is not readable in a name, and each run of _ by one.
func sayable(name string) string {
	name = strings.Map(func(r rune) rune {
		if sayableRune(r) {
			return r
		}
		return '_'
	}, name)
	for strings.Contains(name, separator) {
		name = strings.ReplaceAll(name, separator, "_")
	}
	return strings.Trim(name, "_")
}
