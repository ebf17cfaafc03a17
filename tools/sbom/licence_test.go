package main

import (
	"strings"
	"testing"
)

func TestLicencesAreKnownByTheirText(t *testing.T) {
	const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software … THE SOFTWARE IS PROVIDED "AS IS", …`
	const bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
	for text, want := range map[string]string{
		mit: "MIT",
		bsd: "BSD-2-Clause",
		bsd + "… may be used to endorse or promote products derived from": "BSD-3-Clause",
		bsd + "… All advertising materials mentioning":                     "",
		"GNU GENERAL PUBLIC LICENSE Version 3":                             "",
		mit + " Commons Clause":                                            "",
		"All rights reserved.":                                             "",
	} {
		if got := strings.Join(identify(text), " "); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
