package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) applyCommand() *cobra.Command {
	var files []string
	var reason string
	request := &toolgrantv1.ApplyManifestRequest{}
	command := &cobra.Command{
		Use:               "apply -f FILE",
		Short:             "Make what is stored equal to manifests: files, folders, or - for standard input",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			manifests, err := readManifests(files, command.InOrStdin())
			if err != nil {
				return err
			}
			request.Manifest = manifests.joined()
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ApplyManifestResponse, error) {
				response, err := toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(because(ctx, reason), request)
				return response, manifests.locate(err)
			}, func(w io.Writer, r *toolgrantv1.ApplyManifestResponse) {
				printChanges(w, r, request.GetDryRun(), manifests.position)
			})
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil, "a manifest, a folder of them, or - (may be repeated)")
	command.Flags().BoolVar(&request.DryRun, "dry-run", false, "show what would change, and change nothing")
	command.Flags().BoolVar(&request.Prune, "prune", false, "delete what the manifests do not name, in sections that name any")
	command.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	complete(command, "reason", cobra.NoFileCompletions)
	_ = command.MarkFlagRequired("filename")                        // the flag exists
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json") // the flag exists
	return command
}
