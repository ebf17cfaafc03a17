package discovery

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Tool is what a search knows of a tool. All but ID may be empty.
type Tool struct {
	ID   id.Tool
	Name string // what a model sees
	// Titles and Descriptions in all languages: a request may be in any of them.
	Titles, Descriptions []string
	Parameters           []Parameter // of all its functions, and the functions' own names and descriptions
	Keywords, Aliases    []string    // from the operator
	Domains              []string    // from its capability declaration
	Examples             []string    // requests that it is for
	Category             string
	Server               string // the MCP server it comes from
	ServerDescription    string
	// Created is since when it is there: for past requests from before it could not be chosen. The zero time: for all.
	Created time.Time
}

// Parameter is an argument that a tool takes. Its name and description often have words of requests that
// nothing else of the tool has.
type Parameter struct{ Name, Description string }

// field is a part of a tool that is searched with a weight of its own.
type field int

const (
	fieldName field = iota
	fieldAlias
	fieldKeyword
	fieldDescription
	fieldParameter
	fieldGroup
	fieldServerDescription
	fieldExample
	fieldCount
)

// Bounds of what is indexed of one tool, so that none is dearer than some dozen others.
const (
	maxFieldTokens = 512
	maxToolGrams   = 1024
)

// texts returns the texts of a field.
func (t *Tool) texts(f field) []string {
	switch f {
	case fieldName:
		return []string{t.Name}
	case fieldAlias:
		return append(append([]string(nil), t.Titles...), t.Aliases...)
	case fieldKeyword:
		return append(append([]string(nil), t.Keywords...), t.Domains...)
	case fieldDescription:
		return t.Descriptions
	case fieldParameter:
		texts := make([]string, 0, 2*len(t.Parameters))
		for _, p := range t.Parameters {
			texts = append(texts, p.Name, p.Description)
		}
		return texts
	case fieldGroup:
		return []string{t.Server, t.Category}
	case fieldServerDescription:
		return []string{t.ServerDescription}
	case fieldExample:
		return t.Examples
	}
	return nil
}

// String is the field's name in words and in settings.
func (f field) String() string {
	return [...]string{"name", "alias", "keyword", "description", "parameter", "group", "server_description", "example"}[f]
}
