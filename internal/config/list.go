package config

import (
	"fmt"
	"regexp"
	"strings"
)

// List is some names.
type List []string

var listed = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// Set implements pflag.Value: names, separated by commas.
func (l *List) Set(text string) error {
	*l = nil
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" && strings.TrimSpace(text) == "" {
			continue
		}
		if !listed.MatchString(name) {
			return fmt.Errorf("%q is no name", name)
		}
		*l = append(*l, name)
	}
	return nil
}

// String implements pflag.Value.
func (l List) String() string { return strings.Join(l, ",") }

// Type implements pflag.Value.
func (l List) Type() string { return "list" }
