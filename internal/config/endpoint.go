package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// endpoint: an address of HTTP, whole, without a password: keys are referred to, so that the address can be logged.
func endpoint(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must be an address as https://host/path")
	case u.User != nil:
		return errors.New("must have no user and no password: the key is set apart")
	}
	return nil
}

const (
	fromEnvironment = "env:"
	fromFile        = "file:"
	// maxKey bounds a key, in bytes.
	maxKey = 8192
)

// reference says where a secret is.
func reference(to string) error {
	name, isEnv := strings.CutPrefix(to, fromEnvironment)
	path, isFile := strings.CutPrefix(to, fromFile)
	if to == "" || isEnv && name != "" || isFile && path != "" {
		return nil
	}
	return errors.New("must be env:NAME or file:/path, and never the key itself") // which is not quoted
}

// Resolve reads the secret that a reference leads to; of an empty one, nothing.
func Resolve(to string) (Secret, error) {
	if err := reference(to); err != nil || to == "" {
		return "", err
	}
	if name, ok := strings.CutPrefix(to, fromEnvironment); ok {
		key := strings.TrimSpace(os.Getenv(name))
		if key == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return checkKey(key, to)
	}
	content, err := os.ReadFile(strings.TrimPrefix(to, fromFile))
	if err != nil {
		return "", err
	}
	if content = bytes.TrimSpace(content); len(content) == 0 {
		return "", fmt.Errorf("%s is empty", to)
	}
	return checkKey(string(content), to)
}

// checkKey refuses what cannot be a header of HTTP.
func checkKey(key, from string) (Secret, error) {
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: a key has at most %d characters, all of ASCII and no white space", from, maxKey)
	}
	return Secret(key), nil
}
