// Package pin holds what the operator approved of an external MCP server against what the server says now.
//
// The functions of a tool type are pinned: they are what was imported, or approved later. What the server lists is
// compared with them by digest. A function that it changed, or that is new, may not be used until an operator has
// looked at it; one that it has no longer cannot be.
package pin
