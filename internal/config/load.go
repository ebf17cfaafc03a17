package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// setting is a field of Config.
type setting struct {
	name string
	flag *pflag.Flag
}

// text is a value as some source gave it.
type text struct {
	source string // in the words of whoever wrote it: --grpc-addr, TOOLGRANT_GRPC_ADDR, server.yaml:3: grpc_addr
	value  string
}

// given keeps what a flag was given, so that a bad value is reported together with all other faults.
type given struct {
	pflag.Value
	text string
}

// Set implements pflag.Value.
func (g *given) Set(text string) error {
	g.text = text
	return nil
}

// Flags adds a flag for every setting, and --config. When they are parsed, the returned function reads all
// sources; it names every fault that it finds, and its source.
func Flags(flags *pflag.FlagSet) (load func() (*Config, error)) {
	c := &Config{sources: map[string]string{}}
	settings := c.settings(flags)
	file := flags.String("config", "", "a YAML file of settings, named as here: grpc_addr for --grpc-addr (TOOLGRANT_CONFIG)")
	return func() (*Config, error) {
		path := *file
		if path == "" {
			path = os.Getenv(variable("config"))
		}
		return c, c.load(settings, path)
	}
}

// settings gives every field its default and a flag.
func (c *Config) settings(flags *pflag.FlagSet) []setting {
	var settings []setting
	fields := reflect.ValueOf(c).Elem()
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		name := tag.Get("name")
		if name == "" {
			continue
		}
		otherwise := tag.Get("default")
		if name == "data_dir" {
			otherwise = defaultDataDir()
		}
		flagName := strings.ReplaceAll(name, "_", "-")
		usage := fmt.Sprintf("%s (%s)", tag.Get("usage"), variable(name))
		switch field := fields.Field(i).Addr().Interface().(type) {
		case *string:
			flags.StringVar(field, flagName, otherwise, usage)
		case *time.Duration:
			flags.DurationVar(field, flagName, 0, usage)
		case *int:
			flags.IntVar(field, flagName, 0, usage)
		case *float64:
			flags.Float64Var(field, flagName, 0, usage)
		case *bool:
			flags.BoolVar(field, flagName, false, usage)
		case pflag.Value:
			flags.Var(field, flagName, usage)
		default:
			panic(fmt.Sprintf("config: %s: no flag for a %T", name, field))
		}
		flag := flags.Lookup(flagName)
		if otherwise != "" {
			if err := flag.Value.Set(otherwise); err != nil {
				panic(fmt.Sprintf("config: %s: default: %v", name, err))
			}
		}
		flag.DefValue = flag.Value.String()
		flag.Value = &given{Value: flag.Value}
		settings = append(settings, setting{name: name, flag: flag})
	}
	return settings
}

// variable is the environment variable of a setting.
func variable(name string) string { return "TOOLGRANT_" + strings.ToUpper(name) }

func (c *Config) load(settings []setting, path string) error {
	file, faults := map[string]text{}, []error(nil)
	if path != "" {
		known := map[string]bool{} // and whether it may be more than one value
		for _, s := range settings {
			_, structured := s.flag.Value.(*given).Value.(interface{ structured() })
			known[s.name] = structured
		}
		file, faults = readFile(path, known)
	}
	for _, s := range settings {
		chosen, ok := s.strongest(file)
		if !ok {
			continue
		}
		c.sources[s.name] = chosen.source
		if err := s.flag.Value.(*given).Value.Set(chosen.value); err != nil {
			what, told := kinds[s.flag.Value.Type()]
			if told {
				err = fmt.Errorf("must be %s, not %q", what, chosen.value)
			}
			faults = append(faults, fmt.Errorf("%s: %w", chosen.source, err))
		}
	}
	return errors.Join(append(faults, c.Validate())...)
}

// kinds words what values must be, by the type of their flags.
var kinds = map[string]string{"duration": "a duration, such as 10s", "bool": "true or false", "int": "a whole number", "float64": "a number", "numbers": "name=number, separated by commas", "bytes": "a number of bytes, such as 256MiB",
	"level": "debug, info, warn or error",
	"list":  "names of letters, digits, _ and -, separated by commas"}

// strongest is the value of the strongest source that has one. An empty variable is as good as none.
func (s setting) strongest(file map[string]text) (text, bool) {
	if s.flag.Changed {
		return text{"--" + s.flag.Name, s.flag.Value.(*given).text}, true
	}
	if value := os.Getenv(variable(s.name)); value != "" {
		return text{variable(s.name), value}, true
	}
	t, ok := file[s.name]
	return t, ok
}
