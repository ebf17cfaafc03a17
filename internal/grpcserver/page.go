package grpcserver

import (
	"encoding/base64"
	"encoding/json"

	"github.com/toolgrant/toolgrant/internal/fault"
)

const defaultPageSize = 100

var errPageToken = fault.Invalid(fault.Violation{Field: "page_token", Description: "not a token that this list returned"})

// pageContent is what a page token holds: which list it belongs to, and the last key of the page before.
type pageContent struct {
	List  string `json:"l"`
	After string `json:"a"`
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
