package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// readFile reads a YAML file of one document, a map of known settings. It names every fault. The values of those settings
// that are known as true may be lists and maps, which are returned as YAML.
func readFile(path string, known map[string]bool) (map[string]text, []error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{fmt.Errorf("configuration file: %w", err)}
	}
	var content map[string]yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&content); err != nil && !errors.Is(err, io.EOF) {
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, []error{fmt.Errorf("%s: must be one YAML document, and nothing after it", path)}
	}
	values, faults := map[string]text{}, []error(nil)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		node := content[name]
		source := fmt.Sprintf("%s:%d: %s", path, node.Line, name)
		structured, exists := known[name]
		switch {
		case !exists:
			faults = append(faults, fmt.Errorf("%s: no such setting", source))
		case structured:
			data, err := yaml.Marshal(&node)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", source, err))
			}
			values[name] = text{source, string(data)}
		case node.Kind != yaml.ScalarNode || node.Tag == "!!null":
			faults = append(faults, fmt.Errorf("%s: must have one value", source))
		default:
			values[name] = text{source, node.Value}
		}
	}
	return values, faults
}
