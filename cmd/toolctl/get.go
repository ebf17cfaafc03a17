package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func (c *cli) getCommand() *cobra.Command {
	var user string
	var limit int
	command := &cobra.Command{
		Use:   "get KIND [ID...]",
		Short: "Show objects: all of a kind, or those named",
		Long:  "Show objects: all of a kind, or those named. The kinds:\n\n" + kindsHelp(),
		Example: "  toolctl get tools\n  toolctl get tool weather -o yaml\n  toolctl get devices --user ann\n" +
			"  toolctl get membership ann,premium\n  toolctl get default-avatar '*,phone'",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeGet(&user),
		RunE: func(command *cobra.Command, args []string) error {
			k, err := kindNamed(args[0])
			if err != nil {
				return err
			}
			if limit < 0 {
				return errors.New("--limit: must not be negative")
			}
			return c.get(command, k, user, limit, args[1:])
		},
	}
	command.Flags().StringVar(&user, "user", "", "whose devices or memberships")
	command.Flags().IntVar(&limit, "limit", 0, "list at most so many (default: all)")
	complete(command, "user", c.completeIDs("users", nil))
	complete(command, "limit", cobra.NoFileCompletions)
	return command
}

func kindsHelp() string {
	var b strings.Builder
	for i := range kinds {
		k := &kinds[i]
		id := strings.ToUpper(strings.Join(k.id, ","))
		switch {
		case k.unlisted:
			id += ", by id only"
		case k.ofUser():
			id += ", or --user USER"
		case k.anyID:
			id += ", * for any"
		}
		fmt.Fprintf(&b, "  %-16s %-4s %s\n", k.name, strings.Join(k.short, " "), id)
	}
	return b.String()
}

func (c *cli) get(command *cobra.Command, k *kind, user string, limit int, ids []string) error {
	switch {
	case len(ids) == 0 && k.unlisted:
		return fmt.Errorf("%s cannot be listed: name one", k.name)
	case len(ids) == 0 && k.ofUser() && user == "":
		return fmt.Errorf("%s are listed by user: give --user", k.name)
	case user != "" && !k.ofUser():
		return fmt.Errorf("--user does not go with %s", k.name)
	}
	conn, err := c.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	t := k.newTable()
	if len(ids) == 0 {
		request, response, err := k.list(command.Context(), conn, user, limit)
		if err != nil {
			return err
		}
		k.appendRows(t, request, response)
		return c.print(command.OutOrStdout(), renderer(t), response)
	}
	var responses []proto.Message
	for _, id := range ids {
		parts, err := k.split(user, id)
		if err != nil {
			return err
		}
		request, response, err := k.get(command.Context(), conn, parts)
		if err != nil {
			return err
		}
		k.appendRows(t, request, response)
		responses = append(responses, response)
	}
	return c.print(command.OutOrStdout(), renderer(t), responses...)
}

func renderer(t table.Writer) func(io.Writer) {
	return func(w io.Writer) {
		t.SetOutputMirror(w)
		t.Render()
	}
}

func (k *kind) newTable() table.Writer {
	var header []any
	for _, column := range k.columns {
		header = append(header, strings.ToUpper(strings.ReplaceAll(column, "_", " ")))
	}
	return newTable(nil, header...)
}

// appendRows adds the objects of a response. What they don't tell of themselves the request does: whose they
// are.
func (k *kind) appendRows(t table.Writer, request, response proto.Message) {
	for _, object := range k.objects(response) {
		var row table.Row
		for _, column := range k.columns {
			from := object
			field := from.Descriptor().Fields().ByName(protoreflect.Name(column))
			if field == nil {
				from = request.ProtoReflect()
				field = from.Descriptor().Fields().ByName(protoreflect.Name(column))
			}
			text := cell(from, field)
			if slices.Contains(k.id, column) {
				text = k.part(text)
			}
			row = append(row, text)
		}
		t.AppendRow(row)
	}
}

// maxItems is how many items of a list a cell shows.
const maxItems = 4

// cell words a field for a table; empty where it has its default.
func cell(message protoreflect.Message, field protoreflect.FieldDescriptor) string {
	if !message.Has(field) && field.Kind() != protoreflect.Int32Kind {
		return ""
	}
	value := message.Get(field)
	if !field.IsList() {
		return scalar(value, field)
	}
	var items []string
	list := value.List()
	for i := range min(list.Len(), maxItems) {
		items = append(items, scalar(list.Get(i), field))
	}
	if list.Len() > maxItems {
		items = append(items, fmt.Sprintf("… (%d)", list.Len()))
	}
	return strings.Join(items, "\n")
}

func scalar(value protoreflect.Value, field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return "yes"
	case protoreflect.EnumKind:
		name := string(field.Enum().Values().ByNumber(value.Enum()).Name())
		prefix := strings.TrimSuffix(string(field.Enum().Values().ByNumber(0).Name()), "UNSPECIFIED")
		return strings.ToLower(strings.TrimPrefix(name, prefix))
	case protoreflect.MessageKind:
		if t, ok := value.Message().Interface().(*timestamppb.Timestamp); ok {
			return t.AsTime().Format(time.RFC3339)
		}
		// A part of the object, named by its first field.
		return value.Message().Get(value.Message().Descriptor().Fields().ByNumber(1)).String()
	}
	return value.String()
}

// getChat is "get chats CHAT".
func (c *cli) getChat(command *cobra.Command, id string) error {
	k, err := kindNamed("chats")
	if err != nil {
		return err
	}
	return c.get(command, k, "", 0, []string{id})
}

// listed reads the ids of a kind's objects, of a user's parts without the user.
func (c *cli) listed(ctx context.Context, k *kind, user string) ([]string, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_, response, err := k.list(ctx, conn, user, 0)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, object := range k.objects(response) {
		var parts []string
		for _, name := range k.id {
			if field := object.Descriptor().Fields().ByName(protoreflect.Name(name)); field != nil {
				parts = append(parts, k.part(object.Get(field).String()))
			}
		}
		ids = append(ids, strings.Join(parts, ","))
	}
	return ids, nil
}
