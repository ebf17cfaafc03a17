package config

import "log/slog"

// Level is what is logged: this and what is worse.
type Level slog.Level

// Set implements pflag.Value.
func (l *Level) Set(text string) error { return (*slog.Level)(l).UnmarshalText([]byte(text)) }

// String implements pflag.Value.
func (l Level) String() string { return slog.Level(l).String() }

// Type implements pflag.Value.
func (l Level) Type() string { return "level" }
