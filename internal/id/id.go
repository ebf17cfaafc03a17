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
)
