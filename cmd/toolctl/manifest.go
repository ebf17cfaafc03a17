package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"buf.build/go/protoyaml"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) applyCommand() *cobra.Command {
	var files []string
	request := &toolgrantv1.ApplyManifestRequest{}
	command := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make what is stored equal to manifests: files, folders, or - for standard input",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var err error
			if request.Manifest, err = readManifests(files, command.InOrStdin()); err != nil {
				return err
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ApplyManifestResponse, error) {
				return toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(ctx, request, grpc.MaxCallSendMsgSize(maxMessageBytes))
			}, func(w io.Writer, r *toolgrantv1.ApplyManifestResponse) { printChanges(w, r, request.GetDryRun()) })
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil, "a manifest, a folder of them, or - (may be repeated)")
	command.Flags().BoolVar(&request.DryRun, "dry-run", false, "show what would change, and change nothing")
	command.Flags().BoolVar(&request.Prune, "prune", false, "delete what the manifests do not name, in sections that name any")
	_ = command.MarkFlagRequired("filename") // the flag exists
	return command
}

func (c *cli) exportCommand() *cobra.Command {
	request := &toolgrantv1.ExportManifestRequest{}
	command := &cobra.Command{
		Use:   "export",
		Short: "Print what is stored as a manifest",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if c.output == "table" {
				c.output = "yaml"
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

// readManifests reads and joins manifests; every fault tells its file, line and field.
func readManifests(names []string, in io.Reader) (*toolgrantv1.Manifest, error) {
	joined := &toolgrantv1.Manifest{}
	var faults []error
	read := func(name string, data []byte) {
		m := &toolgrantv1.Manifest{}
		if err := (protoyaml.UnmarshalOptions{Path: name}).Unmarshal(data, m); err != nil {
			faults = append(faults, err)
			return
		}
		proto.Merge(joined, m)
	}
	for _, name := range names {
		if name == "-" {
			data, err := io.ReadAll(in)
			if err != nil {
				return nil, err
			}
			read("standard input", data)
			continue
		}
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			ext := filepath.Ext(path)
			if err != nil || entry.IsDir() || (path != name && ext != ".yaml" && ext != ".yml" && ext != ".json") {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				read(path, data)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return joined, errors.Join(faults...)
}

func printChanges(w io.Writer, r *toolgrantv1.ApplyManifestResponse, dryRun bool) {
	signs := map[toolgrantv1.ChangeAction]string{
		toolgrantv1.ChangeAction_CHANGE_ACTION_CREATE: "+", toolgrantv1.ChangeAction_CHANGE_ACTION_UPDATE: "~",
		toolgrantv1.ChangeAction_CHANGE_ACTION_DELETE: "-",
	}
	for _, change := range r.GetChanges() {
		fmt.Fprintf(w, "%s %s %s\n", signs[change.GetAction()], change.GetSection(), change.GetId())
		for _, f := range change.GetFields() {
			fmt.Fprintf(w, "    %s: %s -> %s\n", f.GetField(), f.GetBefore(), f.GetAfter())
		}
	}
	for _, warning := range r.GetWarnings() {
		fmt.Fprintf(w, "warning: %s: %s\n", warning.GetField(), warning.GetDescription())
	}
	switch {
	case len(r.GetChanges()) == 0:
		fmt.Fprintln(w, "nothing to change")
	case dryRun:
		fmt.Fprintf(w, "%d changes, not made: this was a dry run\n", len(r.GetChanges()))
	default:
		fmt.Fprintf(w, "%d changes made\n", len(r.GetChanges()))
	}
}
