// Package id has a type for each kind of identifier, so that one cannot stand where another belongs.
// Identifiers are the caller's strings: 1 to 128 of the characters A-Z a-z 0-9 . _ : @ / -
package id

type (
	// ToolType names a tool type.
	ToolType string
	// Tool names a tool: a tool type with a configuration.
	Tool string
	// MCPServer names an MCP server.
	MCPServer string
	// User names a user.
	User string
	// Device names a device.
	Device string
	// DeviceType names a kind of device.
	DeviceType string
	// Group names a group of users.
	Group string
	// Avatar names an LLM persona.
	Avatar string
	// Chat names a conversation.
	Chat string
	// Quota names a rule about how often tools may be called.
	Quota string
	// Call names one call of a tool.
	Call string
	// APIKey names an API key. It is no secret.
	APIKey string
	// Approval names a person's word on a call. The server chooses it.
	Approval string
)

// MaxBytes is how long an identifier may be.
const MaxBytes = 128

// Valid tells whether a text is an identifier.
func Valid(text string) bool {
	if len(text) == 0 || len(text) > MaxBytes {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '-' <= c && c <= ':', c == '_', c == '@':
			// From - to : are - . / 0-9 and :
		default:
			return false
		}
	}
	return true
}
