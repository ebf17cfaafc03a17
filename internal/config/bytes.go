package config

import "github.com/dustin/go-humanize"

// Bytes is an amount of memory.
type Bytes uint64

// Set implements pflag.Value: a number, with a unit such as MiB or none.
func (b *Bytes) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	*b = Bytes(n)
	return err
}

// String implements pflag.Value.
func (b Bytes) String() string { return humanize.IBytes(uint64(b)) }

// Type implements pflag.Value.
func (b Bytes) Type() string { return "bytes" }
