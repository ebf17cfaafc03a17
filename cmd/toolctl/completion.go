package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout is how long a person is kept waiting at the prompt.
const completionTimeout = time.Second

// complete says how a flag is completed.
func complete(command *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic("toolctl: " + err.Error()) // the flag exists and is registered once
	}
}

// completeIDs offers the ids of a kind's objects that the server knows, of one user for the parts of users.
// When the server is away it offers nothing.
func (c *cli) completeIDs(kindName string, user *string, more ...string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		offers := slices.Clone(more)
		k, err := kindNamed(kindName)
		if err != nil || k.unlisted || (k.ofUser() && (user == nil || *user == "")) {
			return offers, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		owner := ""
		if user != nil {
			owner = *user
		}
		if ids, err := c.listed(ctx, k, owner); err == nil {
			offers = append(offers, ids...)
		}
		return slices.DeleteFunc(offers, func(id string) bool { return slices.Contains(args, id) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAfter completes the arguments after the first some, which are free.
func completeAfter(free int, with cobra.CompletionFunc) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) < free {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return with(command, args, word)
	}
}

// completeGet offers kinds, then ids.
func (c *cli) completeGet(user *string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			var names []string
			for _, k := range kinds {
				names = append(names, k.name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		if k, err := kindNamed(args[0]); err == nil && k.ofUser() && *user == "" {
			return c.completeOwned(command, k, args[1:], word)
		}
		return c.completeIDs(args[0], user)(command, args[1:], word)
	}
}

// completeOwned completes "USER,ID" part by part.
func (c *cli) completeOwned(command *cobra.Command, k *kind, args []string, word string) ([]string, cobra.ShellCompDirective) {
	owner, _, found := strings.Cut(word, ",")
	if !found {
		users, directive := c.completeIDs("users", nil)(command, nil, word)
		for i := range users {
			users[i] += ","
		}
		return users, directive | cobra.ShellCompDirectiveNoSpace
	}
	ids, directive := c.completeIDs(k.name, &owner)(command, nil, word)
	for i := range ids {
		ids[i] = owner + "," + ids[i]
	}
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(args, id) }), directive
}
