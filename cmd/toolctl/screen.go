package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// terminalOf returns how to learn a terminal's width and height, if out is one.
func terminalOf(out io.Writer) (size func() (width, height int, err error), ok bool) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, false
	}
	return func() (int, int, error) { return term.GetSize(int(file.Fd())) }, true
}

// screen is lines at the cursor of a terminal that are drawn again and again in the same place.
type screen struct {
	out   io.Writer
	size  func() (width, height int, err error)
	drawn []string
}

// draw replaces what was drawn. What does not fit is cut, but for the last line.
func (s *screen) draw(lines []string, last string) error {
	width, height := s.measure()
	if most := max(height-2, 0); len(lines) > most { // the last line, and the one of the cursor
		more := len(lines) - max(most-1, 0)
		lines = append(lines[:max(most-1, 0):max(most-1, 0)], fmt.Sprintf("… %d more lines: make the terminal higher", more))
	}
	erase := s.erase(width)
	s.drawn = nil
	for _, line := range append(lines, last) {
		s.drawn = append(s.drawn, text.Snip(line, width, "…"))
	}
	_, err := io.WriteString(s.out, erase+strings.Join(s.drawn, "\n")+"\n")
	return err
}

// clear removes what was drawn.
func (s *screen) clear() error {
	width, _ := s.measure()
	_, err := io.WriteString(s.out, s.erase(width))
	s.drawn = nil
	return err
}

// erase goes back to where drawing began. A terminal that became narrower has wrapped what was drawn.
func (s *screen) erase(width int) string {
	if len(s.drawn) == 0 {
		return ""
	}
	up := 0
	for _, line := range s.drawn {
		up += max(1, (text.StringWidthWithoutEscSequences(line)+width-1)/width)
	}
	const eraseBelow = "\x1b[J"
	return text.CursorUp.Sprintn(up) + "\r" + eraseBelow
}

// measure returns a size that can be worked with, whatever the terminal says of itself.
func (s *screen) measure() (width, height int) {
	width, height, err := s.size()
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
