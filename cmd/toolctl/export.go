package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) exportCommand() *cobra.Command {
	request := &toolgrantv1.ExportManifestRequest{}
	command := &cobra.Command{
		Use:               "export",
		Short:             "Print what is stored as a manifest; applying it changes nothing",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if c.output == formatTable {
				c.output = formatYAML
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.Manifest, error) {
				r, err := toolgrantv1.NewAdminServiceClient(conn).ExportManifest(ctx, request)
				return r.GetManifest(), err
			}, func(io.Writer, *toolgrantv1.Manifest) {})
		},
	}
	command.Flags().BoolVar(&request.OmitUsers, "omit-users", false, "leave out the users")
	return command
}
