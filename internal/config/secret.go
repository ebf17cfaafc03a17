package config

import (
	"fmt"
	"io"
)

// hidden is what is printed of a secret.
const hidden = "(hidden)"

// Secret is a setting that may hold a password. It prints as nothing but that it is there; string(s) is
// what it holds.
type Secret string

// Format implements fmt.Formatter, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// MarshalText keeps it out of JSON logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Set implements pflag.Value.
func (s *Secret) Set(text string) error {
	*s = Secret(text)
	return nil
}

// Type implements pflag.Value.
func (*Secret) Type() string { return "string" }
