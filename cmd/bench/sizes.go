package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// sizes is how much there is in a world.
type sizes struct {
	tools, deviceTypes, toolsPerDeviceType, groups, avatars, toolsPerAvatar int
	users, chats, minLogEntries, maxLogEntries                              int
}

// size is one of them with the flag that sets it.
type size struct {
	flag      string
	value     *int
	otherwise int
	low, high int
	meaning   string
}

// maxIDs is how many tools the API accepts in one device type or Avatar.
const maxIDs = 20_000

func (s *sizes) all() []size {
	return []size{
		{"tools", &s.tools, 500, 1, 100_000, "tools in the catalogue"},
		{"device-types", &s.deviceTypes, 20, 1, 1_000, "device types"},
		{"tools-per-device-type", &s.toolsPerDeviceType, 200, 0, maxIDs, "tools that each device type offers"},
		{"groups", &s.groups, 5, 0, 1_000, "groups, each with grants, revokes and a priority"},
		{"avatars", &s.avatars, 50, 1, 10_000, "Avatars; the first is everybody's default"},
		{"tools-per-avatar", &s.toolsPerAvatar, 30, 0, maxIDs, "tools that each Avatar binds"},
		{"users", &s.users, 10_000, 1, 10_000_000, "users, each with 1 to 4 devices, in 0 to 2 groups"},
		{"chats", &s.chats, 10_000, 1, 10_000_000, "chats"},
		{"min-log-entries", &s.minLogEntries, 0, 0, 20_000, "fewest log entries of a chat, besides that of the default Avatar"},
		{"max-log-entries", &s.maxLogEntries, 10, 0, 20_000, "most log entries of a chat, besides that of the default Avatar"},
	}
}

func (s *sizes) flags(f *pflag.FlagSet) {
	for _, one := range s.all() {
		f.IntVar(one.value, one.flag, one.otherwise, one.meaning)
	}
}

// validate names every fault.
func (s *sizes) validate() error {
	var faults []error
	for _, one := range s.all() {
		faults = append(faults, checkCount("--"+one.flag, *one.value, one.low, one.high))
	}
	if s.toolsPerDeviceType > s.tools {
		faults = append(faults, fmt.Errorf("--tools-per-device-type: must not be more than --tools, %d", s.tools))
	}
	if s.toolsPerAvatar > s.tools {
		faults = append(faults, fmt.Errorf("--tools-per-avatar: must not be more than --tools, %d", s.tools))
	}
	if s.minLogEntries > s.maxLogEntries {
		faults = append(faults, fmt.Errorf("--min-log-entries: must not be more than --max-log-entries, %d", s.maxLogEntries))
	}
	return errors.Join(faults...)
}
