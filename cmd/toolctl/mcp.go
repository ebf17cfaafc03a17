package main

import "github.com/spf13/cobra"

func (c *cli) mcpCommand() *cobra.Command {
	command := &cobra.Command{Use: "mcp", Short: "Import the functions of MCP servers, approve what they change, and be one"}
	command.AddCommand(c.mcpImport(), c.mcpQuarantine(), c.mcpApprove(), c.mcpServe())
	return command
}
