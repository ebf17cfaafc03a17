package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// printChanges shows what a manifest changes. position says where a path of the manifest stands.
func printChanges(w io.Writer, r *toolgrantv1.ApplyManifestResponse, dryRun bool, position func(string) string) {
	signs := map[toolgrantv1.ChangeAction]string{
		toolgrantv1.ChangeAction_CHANGE_ACTION_CREATE: "+",
		toolgrantv1.ChangeAction_CHANGE_ACTION_UPDATE: "~",
		toolgrantv1.ChangeAction_CHANGE_ACTION_DELETE: "-",
	}
	count := map[toolgrantv1.ChangeAction]int{}
	for _, change := range r.GetChanges() {
		count[change.GetAction()]++
		fmt.Fprintf(w, "%s %s %s\n", signs[change.GetAction()], change.GetSection(), change.GetId())
		for _, f := range change.GetFields() {
			for _, line := range difference(f.GetField(), value(f.GetBefore()), value(f.GetAfter())) {
				fmt.Fprintln(w, "    "+line)
			}
		}
	}
	for _, warning := range r.GetWarnings() {
		fmt.Fprintf(w, "warning: %s: %s\n", position(warning.GetField()), warning.GetDescription())
	}
	summary := "%d created, %d updated, %d deleted\n"
	if len(r.GetChanges()) == 0 {
		fmt.Fprintln(w, "nothing to change")
		return
	}
	if dryRun {
		summary = "%d to create, %d to update, %d to delete (dry run: nothing was written)\n"
	}
	fmt.Fprintf(w, summary, count[toolgrantv1.ChangeAction_CHANGE_ACTION_CREATE],
		count[toolgrantv1.ChangeAction_CHANGE_ACTION_UPDATE], count[toolgrantv1.ChangeAction_CHANGE_ACTION_DELETE])
}

// value reads a field's JSON; nil where it is unset. What is no JSON is shown as it is.
func value(text string) any {
	if text == "" {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return text
	}
	return v
}

// difference shows how a field changes: objects key by key, lists by what comes and goes, long texts by line.
func difference(field string, before, after any) []string {
	switch old := before.(type) {
	case map[string]any:
		if wanted, ok := after.(map[string]any); ok {
			var lines []string
			for _, key := range slices.Sorted(maps.Keys(union(old, wanted))) {
				if show(old[key]) != show(wanted[key]) {
					lines = append(lines, difference(field+"."+key, old[key], wanted[key])...)
				}
			}
			return lines
		}
	case []any:
		wanted, ok := after.([]any)
		if ok || after == nil {
			return listDifference(field, old, wanted)
		}
	case string:
		if wanted, ok := after.(string); ok {
			return textDifference(field, old, wanted)
		}
	case nil:
		if wanted, ok := after.([]any); ok {
			return listDifference(field, nil, wanted)
		}
	}
	return []string{field + ": " + shorten(show(before)) + " → " + shorten(show(after))}
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// partIDs names the parts of objects: in these lists an item that changes is still the same.
var partIDs = map[string]string{"quotas": "quota_id", "devices": "device_id", "memberships": "group_id", "functions": "name"}

// partsDifference shows which parts come and go, as a whole, and what changes in the others.
func partsDifference(field, idField string, before, after []any) []string {
	byID := func(list []any) map[string]any {
		parts := map[string]any{}
		for _, item := range list {
			part, _ := item.(map[string]any)
			parts[fmt.Sprint(part[idField])] = item
		}
		return parts
	}
	old, wanted := byID(before), byID(after)
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(union(old, wanted))) {
		switch was, is := old[id], wanted[id]; {
		case was == nil:
			lines = append(lines, field+": + "+show(is))
		case is == nil:
			lines = append(lines, field+": - "+show(was))
		case show(was) != show(is):
			lines = append(lines, difference(field+"["+id+"]", was, is)...)
		}
	}
	return lines
}

// listDifference shows what a list loses and gains; equal items are counted.
func listDifference(field string, before, after []any) []string {
	if idField, ok := partIDs[field]; ok {
		return partsDifference(field, idField, before, after)
	}
	count := map[string]int{}
	for _, item := range after {
		count[show(item)]++
	}
	var lines []string
	for _, item := range before {
		if text := show(item); count[text] > 0 {
			count[text]--
		} else {
			lines = append(lines, field+": - "+shorten(text))
		}
	}
	for _, item := range after {
		if text := show(item); count[text] > 0 {
			count[text]--
			lines = append(lines, field+": + "+shorten(text))
		}
	}
	if len(lines) == 0 {
		return []string{field + ": in another order"}
	}
	return lines
}

// textDifference shows short texts as they are, and of long ones the lines that differ.
func textDifference(field, before, after string) []string {
	if len(before) <= maxShown && len(after) <= maxShown && !strings.Contains(before+after, "\n") {
		return []string{field + ": " + show(before) + " → " + show(after)}
	}
	lines := []string{fmt.Sprintf("%s: %d → %d bytes", field, len(before), len(after))}
	unified := string(diff.Diff("before", []byte(before+"\n"), "after", []byte(after+"\n")))
	_, hunks, _ := strings.Cut(unified, "\n@@")
	for line := range strings.Lines("@@" + hunks) {
		if line = strings.TrimSuffix(line, "\n"); line[0] == ' ' {
			line = shorten(line)
		}
		lines = append(lines, "  "+line)
	}
	return lines
}

// show words a value on one line.
func show(v any) string {
	if v == nil {
		return "unset"
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxShown is how many bytes of a value are shown, more or less.
const maxShown = 100

// shorten cuts a long text, and says so.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxShown], ""), len(text))
}
