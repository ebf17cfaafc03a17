package main

import (
	"slices"
	"strings"
)

// phrases are what makes texts the licences that may be: all phrases of one must stand in it, and none of the others.
var phrases = []struct {
	id           string
	all, without []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004", "grant of patent license"}, nil},
	{"MPL-2.0", []string{"mozilla public license", "2.0", "covered software"}, nil},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the software is provided \"as is\""}, nil},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "endorse or promote products derived from"}, []string{"all advertising materials"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, []string{"endorse or promote", "all advertising materials"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee", "above copyright notice"}, nil},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, nil},
	{"CC0-1.0", []string{"cc0 1.0 universal"}, nil},
}

// forbidden are phrases of licences that ask for more than notices: a text that has one is looked at by a person. The
// Mozilla licence names the GNU licences, as others that it goes together with.
var forbidden = []string{"gnu general public license", "gnu affero general public license", "gnu lesser general public license",
	"server side public license", "business source license", "commons clause", "elastic license"}

// identify returns the licences that a text is, by SPDX; none: it is none that is known, or one that asks for more.
func identify(text string) (ids []string) {
	words := strings.Join(strings.Fields(strings.NewReplacer("“", `"`, "”", `"`, "``", `"`, "''", `"`, "//", " ", " * ", " ").Replace(strings.ToLower(text))), " ")
	has := func(phrase string) bool { return strings.Contains(words, phrase) }
	for _, l := range phrases {
		if !slices.ContainsFunc(l.all, func(p string) bool { return !has(p) }) && !slices.ContainsFunc(l.without, has) {
			ids = append(ids, l.id)
		}
	}
	if slices.ContainsFunc(forbidden, has) && !slices.Contains(ids, "MPL-2.0") {
		return nil
	}
	return ids
}
