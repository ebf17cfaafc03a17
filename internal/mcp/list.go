package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// Listing is what a server says that it can do.
type Listing struct {
	// Functions are in the order in which the server lists them.
	Functions []catalog.Function
	// LeftOut are those that the catalogue cannot hold.
	LeftOut []LeftOut
}

// LeftOut is a function of a server that the catalogue cannot hold.
type LeftOut struct {
	// Name is as the server has it, quoted and cut to a bearable length.
	Name string
	// Why is the rule that it breaks.
	Why string
}

// Bounds of a function, which the API has, too.
const (
	maxTitle       = 1 << 10
	maxDescription = 64 << 10
	maxSchema      = 64 << 10
	maxSchemaDepth = 100
)

var functionName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// List reads all pages of the functions that the server has.
func (c *Conn) List(ctx context.Context) (*Listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.List, fmt.Errorf("its functions were not listed within %v", c.limits.List))
	defer cancel()
	listing, err := c.list(ctx)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	return listing, nil
}

func (c *Conn) list(ctx context.Context) (*Listing, error) {
	listing, names, cursors := &Listing{}, map[string]bool{}, map[string]bool{"": true}
	count, size := 0, 0
	for params := (&mcp.ListToolsParams{}); ; {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, tool := range page.Tools {
			if count++; count > c.limits.Functions {
				return nil, fmt.Errorf("it has more than %d functions", c.limits.Functions)
			}
			f, bytes, err := convert(tool)
			if size += bytes; size > c.limits.ListBytes {
				return nil, fmt.Errorf("its functions take more than %d bytes", c.limits.ListBytes)
			}
			if err == nil && names[f.Name] {
				err = errors.New("it is listed twice")
			}
			if err != nil {
				listing.LeftOut = append(listing.LeftOut, LeftOut{Name: quoted(tool.Name), Why: err.Error()})
				continue
			}
			names[f.Name] = true
			listing.Functions = append(listing.Functions, f)
		}
		if page.NextCursor == "" {
			return listing, nil
		}
		if cursors[page.NextCursor] {
			return nil, errors.New("its pages go in a circle")
		}
		if cursors[page.NextCursor] = true; len(cursors) > c.limits.Pages {
			return nil, fmt.Errorf("its functions are on more than %d pages", c.limits.Pages)
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
}

// convert makes a function of the catalogue of what a server lists, and tells its size. What is left out of the
// annotations stays left out: it is taken for the worst where it is read.
func convert(tool *mcp.Tool) (f catalog.Function, size int, err error) {
	f = catalog.Function{Name: tool.Name, Title: tool.Title, Description: tool.Description}
	if a := tool.Annotations; a != nil {
		if f.Title == "" {
			f.Title = a.Title
		}
		f.Annotations = &catalog.Annotations{Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint}
		if a.ReadOnlyHint { // false is what is assumed anyway, and cannot be told from nothing
			f.Annotations.ReadOnly = &a.ReadOnlyHint
		}
		if a.IdempotentHint {
			f.Annotations.Idempotent = &a.IdempotentHint
		}
		if *f.Annotations == (catalog.Annotations{}) {
			f.Annotations = nil
		}
	}
	size = len(f.Name) + len(f.Title) + len(f.Description)
	if tool.InputSchema != nil {
		if f.InputSchema, err = json.Marshal(tool.InputSchema); err != nil {
			return f, size, err
		}
		size += len(f.InputSchema)
		if _, object := tool.InputSchema.(map[string]any); !object {
			return f, size, errors.New("its input schema is no JSON object")
		}
	}
	if tool.OutputSchema != nil {
		if f.OutputSchema, err = json.Marshal(tool.OutputSchema); err != nil {
			return f, size, err
		}
		size += len(f.OutputSchema)
		if _, object := tool.OutputSchema.(map[string]any); !object {
			return f, size, errors.New("its output schema is no JSON object")
		}
	}
	switch {
	case !functionName.MatchString(f.Name):
		err = errors.New("its name is not 1 to 128 of the characters A-Z a-z 0-9 _ . -")
	case len(f.Title) > maxTitle:
		err = fmt.Errorf("its title is longer than %d bytes", maxTitle)
	case len(f.Description) > maxDescription:
		err = fmt.Errorf("its description is longer than %d bytes", maxDescription)
	case len(f.InputSchema) > maxSchema:
		err = fmt.Errorf("its input schema is larger than %d bytes", maxSchema)
	case depth(tool.InputSchema) > maxSchemaDepth:
		err = fmt.Errorf("its input schema is nested deeper than %d", maxSchemaDepth)
	case len(f.OutputSchema) > maxSchema:
		err = fmt.Errorf("its output schema is larger than %d bytes", maxSchema)
	case depth(tool.OutputSchema) > maxSchemaDepth:
		err = fmt.Errorf("its output schema is nested deeper than %d", maxSchemaDepth)
	case strings.ContainsRune(f.Title+f.Description, 0), strings.Contains(string(f.InputSchema)+string(f.OutputSchema), `\u0000`):
		err = errors.New("it has the character U+0000")
	}
	return f, size, err
}

func depth(value any) int {
	deepest := 0
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			deepest = max(deepest, depth(child))
		}
	case []any:
		for _, child := range v {
			deepest = max(deepest, depth(child))
		}
	default:
		return 0
	}
	return deepest + 1
}

// quoted is a name that may be anything, fit to be shown.
func quoted(name string) string {
	const shown = 64
	if len(name) > shown {
		return strconv.QuoteToASCII(strings.ToValidUTF8(name[:shown], "")) + "…"
	}
	return strconv.QuoteToASCII(name)
}
