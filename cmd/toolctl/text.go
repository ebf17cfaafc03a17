package main

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// checkText finds what is no text at all: "LINE:COLUMN: fault", or nothing.
func checkText(data []byte) string {
	return firstRune(data, func(r rune, size int, _ []byte) string {
		switch {
		case r == utf8.RuneError && size <= 1:
			return "not UTF-8"
		case r == 0:
			return "a NUL character"
		}
		return ""
	})
}

// checkCharacters finds characters that YAML forbids, and those that some parsers take for line breaks and
// others don't: what they make of a text is not what its author saw.
func checkCharacters(data []byte) string {
	return firstRune(data, func(r rune, size int, rest []byte) string {
		switch {
		case r == '\n', r == '\t', r == '\r' && len(rest) > size && rest[size] == '\n':
			return ""
		case r == '\ufeff' && len(rest) == len(data):
			return "" // a byte order mark
		case r == '\r':
			return "a carriage return without a line feed"
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff', r == '\ufffe', r == '\uffff':
			return fmt.Sprintf(`the character %U: write it as \u%04X in double quotes`, r, r)
		}
		return ""
	})
}

// firstRune returns the first fault that is found, with its position.
func firstRune(data []byte, fault func(r rune, size int, rest []byte) string) string {
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if found := fault(r, size, rest); found != "" {
			return fmt.Sprintf("%d:%d: %s", line, column, found)
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		rest = rest[size:]
	}
	return ""
}

// part is a document in a file.
type part struct {
	line int // the lines before it
	data []byte
}

// splitDocuments cuts YAML at the lines that begin and end documents; nowhere else may a line look like that.
// What stands before a beginning, such as comments and directives, belongs to the document; documents without
// content are left out.
func splitDocuments(data []byte) []part {
	var parts []part
	var current part
	begun, content := false, false // by a marker; whether there is something in it
	cut := func(at part) {
		if content {
			parts = append(parts, current)
		}
		current, begun, content = at, false, false
	}
	line := 0
	for rest := data; len(rest) > 0; line++ {
		text, after, _ := bytes.Cut(rest, []byte("\n"))
		text = bytes.TrimRight(text, " \t\r")
		if isMarker(text, "---") {
			if begun || content {
				cut(part{line: line})
			}
			begun = true
			text = text[len("---"):]
		}
		length := len(rest) - len(after)
		if current.data == nil {
			current = part{line: line, data: rest[:0]}
		}
		current.data = current.data[:len(current.data)+length]
		if isMarker(text, "...") {
			cut(part{line: line + 1})
		} else if text = bytes.TrimLeft(text, " \t"); len(text) > 0 && text[0] != '#' && text[0] != '%' {
			content = true
		}
		rest = after
	}
	cut(part{})
	return parts
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}
