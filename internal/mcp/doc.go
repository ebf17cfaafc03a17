// Package mcp speaks the Model Context Protocol, with its official SDK: as a client of external MCP servers, whose
// functions it lists and calls.
//
// External servers are not trusted. Whatever one of them does, it costs bounded time and memory, and what it says is
// data: it is compared and shown, never followed. See Limits.
package mcp
