package grpcserver

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/fault"
)

const defaultPageSize = 100

// pageRequest is a request for a page of a list.
type pageRequest interface {
	GetPageSize() int32
	GetPageToken() string
}

// consistentPageRequest is one that says how fresh the page must be.
type consistentPageRequest interface {
	pageRequest
	GetConsistency() *toolgrantv1.Consistency
}

// page is what a page of a list tells besides its objects.
type page struct{ next, revision string }

var errPageToken = fault.Invalid(fault.Violation{Field: "page_token", Description: "not a token that this list returned"})

// pageContent is what a page token holds: which list it belongs to, and the last key of the page before.
type pageContent struct {
	List  string `json:"l"`
	After string `json:"a"`
}

// openPage reads where a page begins, and how many objects it holds at most.
func openPage(list string, p pageRequest) (after string, size int32, err error) {
	if size = p.GetPageSize(); size == 0 {
		size = defaultPageSize
	}
	after, err = parsePageToken(list, p.GetPageToken())
	return after, size, err
}

// closePage cuts a page to its size, and returns the token of the next if there is one.
func closePage[D any](objects []D, size int32, list string, name func(D) string) (page []D, next string) {
	if len(objects) <= int(size) {
		return objects, ""
	}
	objects = objects[:size]
	return objects, pageToken(list, name(objects[size-1]))
}

// following returns the objects after one, at most so many, of a list in the order of names.
func following[D any](objects []D, name func(D) string, after string, atMost int32) []D {
	first, found := slices.BinarySearchFunc(objects, after, func(object D, after string) int {
		return cmp.Compare(name(object), after)
	})
	if found {
		first++
	}
	return objects[first:min(first+int(atMost), len(objects))]
}

func pageToken(list, after string) string {
	content, _ := json.Marshal(pageContent{list, after}) // two strings always marshal
	return base64.RawURLEncoding.EncodeToString(content)
}

// parsePageToken returns the last key of the page before; empty for the first page.
func parsePageToken(list, token string) (after string, err error) {
	if token == "" {
		return "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", errPageToken
	}
	var content pageContent
	if err := json.Unmarshal(data, &content); err != nil || content.List != list || content.After == "" {
		return "", errPageToken
	}
	return content.After, nil
}
