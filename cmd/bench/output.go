package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Forms of output.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputRows  = "rows" // those of a Markdown table, without its head: tables of several runs are made of them
)

const outputUsage = "table, json, or rows of a Markdown table"

func checkOutput(output string) error {
	if output != outputTable && output != outputJSON && output != outputRows {
		return fmt.Errorf("--output: must be table, json or rows, not %q", output)
	}
	return nil
}

// findings is a report as a table.
type findings struct {
	head    []any
	rows    [][]any
	remarks []string // below a table for people
}

// print writes a report: what it is in JSON, or its findings.
func (f *findings) print(w io.Writer, output string, report any) error {
	if output == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	var errs []error
	if output == outputRows {
		for _, row := range f.rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = fmt.Sprint(cell)
			}
			_, err := fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(f.head)
	for _, row := range f.rows {
		t.AppendRow(row)
	}
	_, err := fmt.Fprintln(w, t.Render())
	errs = append(errs, err)
	for _, remark := range f.remarks {
		_, err := fmt.Fprintln(w, remark)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// decimal writes a figure with so many digits that what matters is seen, and no more.
func decimal(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
