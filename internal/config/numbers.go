package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Numbers are numbers by name.
type Numbers map[string]float64

// Set implements pflag.Value: name=number, separated by commas.
func (n *Numbers) Set(text string) error {
	*n = nil
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return fmt.Errorf("%q is no name=number", pair)
		}
		if *n == nil {
			*n = Numbers{}
		}
		(*n)[strings.TrimSpace(name)] = number
	}
	return nil
}

// String implements pflag.Value.
func (n Numbers) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		pairs = append(pairs, name+"="+strconv.FormatFloat(n[name], 'g', -1, 64))
	}
	return strings.Join(pairs, ",")
}

// Type implements pflag.Value.
func (n Numbers) Type() string { return "numbers" }
