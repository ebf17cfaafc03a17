package config

import (
	"cmp"
	"fmt"
	"reflect"
)

// Setting is the value of a setting, and where it comes from.
type Setting struct {
	// Name is that in the file.
	Name string
	// Value is what it is, or that it is hidden.
	Value string
	// Source is in the words of whoever set it, such as TOOLGRANT_GRPC_ADDR, or "default".
	Source string
}

// Settings are all settings, in the order of Config.
func (c *Config) Settings() []Setting {
	var all []Setting
	fields := reflect.ValueOf(c).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("name")
		if name == "" {
			continue
		}
		all = append(all, Setting{name, fmt.Sprint(fields.Field(i).Interface()), cmp.Or(c.sources[name], "default")})
	}
	return all
}
