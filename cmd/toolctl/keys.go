package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const rolePrefix = "ROLE_"

func (c *cli) keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Give out, list, rotate and revoke API keys"}
	keys.AddCommand(c.keysCreate(), c.keysList(), c.keysRotate(), c.keysRevoke())
	return keys
}

// roleNames are the roles as people write them.
func roleNames() []string {
	return words[toolgrantv1.Role](toolgrantv1.Role_name, rolePrefix)
}

func (c *cli) keysCreate() *cobra.Command {
	var role, expires, reason, requestID string
	key := &toolgrantv1.ApiKey{}
	command := &cobra.Command{
		Use: "create KEY --role ROLE", Short: "Create a key, and print its secret: this once",
		Example: "  toolctl keys create chat-1 --role chat_server --expires 2160h\n  toolctl keys create ann-browser --role frontend --user ann",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			key.KeyId = args[0]
			number, known := toolgrantv1.Role_value[rolePrefix+strings.ToUpper(role)]
			if !known || number == 0 {
				return fmt.Errorf("--role: no such role %q: it is one of %s", role, strings.Join(roleNames(), ", "))
			}
			key.Role = toolgrantv1.Role(number)
			if expires != "" {
				end, err := parseTime(expires, time.Now())
				if err != nil {
					return fmt.Errorf("--expires: %w", err)
				}
				key.ExpireTime = timestamppb.New(end)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.CreateApiKeyResponse, error) {
				return toolgrantv1.NewApiKeyServiceClient(conn).CreateApiKey(because(ctx, reason), &toolgrantv1.CreateApiKeyRequest{ApiKey: key, RequestId: orRandom(requestID)})
			}, func(w io.Writer, r *toolgrantv1.CreateApiKeyResponse) { printSecret(w, r.GetApiKey(), r.GetSecret()) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&role, "role", "", "what its callers may do: "+strings.Join(roleNames(), ", "))
	flags.StringVar(&key.UserId, "user", "", "whose data a frontend reaches")
	flags.StringVar(&key.Title, "title", "", "what it is for")
	flags.StringVar(&expires, "expires", "", "when it ends: how long from now (2160h), a day (2027-01-31) or a time (default: never)")
	keyFlags(command, &reason, &requestID)
	_ = command.MarkFlagRequired("role") // the flag exists
	complete(command, "role", cobra.FixedCompletions(roleNames(), cobra.ShellCompDirectiveNoFileComp))
	complete(command, "user", c.completeIDs("users", nil))
	complete(command, "title", cobra.NoFileCompletions)
	complete(command, "expires", cobra.NoFileCompletions)
	return command
}

func (c *cli) keysList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show all keys, in the order of their ids", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListApiKeysResponse, error) {
				return listKeys(ctx, conn)
			}, printKeys)
		},
	}
}

func listKeys(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListApiKeysResponse, error) {
	all := &toolgrantv1.ListApiKeysResponse{}
	for request := (&toolgrantv1.ListApiKeysRequest{PageSize: pageSize}); ; {
		page, err := toolgrantv1.NewApiKeyServiceClient(conn).ListApiKeys(ctx, request)
		if err != nil {
			return nil, err
		}
		all.ApiKeys, all.Revision = append(all.ApiKeys, page.GetApiKeys()...), page.GetRevision()
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
}

func (c *cli) keysRotate() *cobra.Command {
	var reason, requestID string
	var overlap time.Duration
	command := &cobra.Command{
		Use: "rotate KEY", Short: "Give a key another secret, and print it: this once",
		Example: "  toolctl keys rotate chat-1 --overlap 24h",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: c.completeKeys,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.RotateApiKeyResponse, error) {
				return toolgrantv1.NewApiKeyServiceClient(conn).RotateApiKey(because(ctx, reason), &toolgrantv1.RotateApiKeyRequest{KeyId: args[0],
					RequestId: orRandom(requestID), Overlap: durationpb.New(overlap)})
			}, func(w io.Writer, r *toolgrantv1.RotateApiKeyResponse) { printSecret(w, r.GetApiKey(), r.GetSecret()) })
		},
	}
	command.Flags().DurationVar(&overlap, "overlap", 0, "for how long secrets that it has go on, at most 720h (default: they end at once)")
	keyFlags(command, &reason, &requestID)
	complete(command, "overlap", cobra.NoFileCompletions)
	return command
}

func (c *cli) keysRevoke() *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use: "revoke KEY", Short: "End a key for good", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeKeys,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.RevokeApiKeyResponse, error) {
				return toolgrantv1.NewApiKeyServiceClient(conn).RevokeApiKey(because(ctx, reason), &toolgrantv1.RevokeApiKeyRequest{KeyId: args[0]})
			}, func(w io.Writer, r *toolgrantv1.RevokeApiKeyResponse) {
				fmt.Fprintf(w, "%s was revoked at %s\n", r.GetApiKey().GetKeyId(), timeOrNothing(r.GetApiKey().GetRevokeTime()))
			})
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	complete(command, "reason", cobra.NoFileCompletions)
	return command
}

func keyFlags(command *cobra.Command, reason, requestID *string) {
	command.Flags().StringVar(reason, "reason", "", "why, for the audit log")
	command.Flags().StringVar(requestID, "request-id", "", "names the request, so that it can be repeated safely, which does not print the secret again (default: random)")
	complete(command, "reason", cobra.NoFileCompletions)
	complete(command, "request-id", cobra.NoFileCompletions)
}

// completeKeys offers the keys that were not revoked.
func (c *cli) completeKeys(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	conn, err := c.connect()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer conn.Close()
	var offers []string
	if all, err := listKeys(command.Context(), conn); err == nil {
		for _, key := range all.GetApiKeys() {
			if key.GetRevokeTime() == nil {
				offers = append(offers, cobra.CompletionWithDesc(key.GetKeyId(), word(key.GetRole(), rolePrefix)))
			}
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func printSecret(w io.Writer, key *toolgrantv1.ApiKey, secret string) {
	if secret == "" {
		fmt.Fprintf(w, "%s was made by this request before; its secret cannot be told again: rotate it\n", key.GetKeyId())
		return
	}
	fmt.Fprintln(w, secret)
}

func printKeys(w io.Writer, r *toolgrantv1.ListApiKeysResponse) {
	t := newTable(w, "KEY", "ROLE", "USER", "STATE", "EXPIRES", "LAST USED", "SECRETS", "TITLE")
	for _, key := range r.GetApiKeys() {
		t.AppendRow(table.Row{key.GetKeyId(), word(key.GetRole(), rolePrefix), key.GetUserId(), keyState(key, time.Now()), timeOrNothing(key.GetExpireTime()),
			timeOrNothing(key.GetUseTime()), len(key.GetSecrets()), key.GetTitle()})
	}
	t.Render()
}

func keyState(key *toolgrantv1.ApiKey, now time.Time) string {
	switch {
	case key.GetRevokeTime() != nil:
		return "revoked"
	case key.GetExpireTime() != nil && !key.GetExpireTime().AsTime().After(now):
		return "expired"
	}
	return "good"
}

func timeOrNothing(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339)
}
