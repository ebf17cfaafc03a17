package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolgrant/toolgrant/internal/fault"
)

const (
	fetchTimeout = 5 * time.Second
	maxKeysBytes = 1 << 20
	// unknownKeyInterval is how often tokens with keys that are not known may make this server ask for the keys.
	unknownKeyInterval = 2 * time.Second
)

// issuer is an Issuer with its keys.
type issuer struct {
	Issuer
	log     *slog.Logger
	client  *http.Client
	keys    atomic.Pointer[keySet] // nil: they could not be read yet
	fetch   sync.Mutex
	fetched time.Time // when it was tried last
	failing bool
}

// keySet is the keys of an issuer. It never changes: a pointer to another says that they may have.
type keySet struct {
	text string
	keys []jose.JSONWebKey
}

func newIssuer(of Issuer, log *slog.Logger) *issuer {
	return &issuer{Issuer: of, log: log.With("issuer", of.Issuer), client: &http.Client{Timeout: fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") }}}
}

// run reads the keys now and then.
func (i *issuer) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := i.Refresh
		if err := i.refresh(ctx, 0); err != nil {
			wait = min(wait, 10*time.Second)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// key returns the key that a token names, and the set that it is in. A key that is not known may be a new one.
func (i *issuer) key(ctx context.Context, name, algorithm string) (*keySet, *jose.JSONWebKey, error) {
	keys := i.keys.Load()
	if key := keys.find(name, algorithm); key != nil {
		return keys, key, nil
	}
	failed := i.refresh(ctx, unknownKeyInterval)
	keys = i.keys.Load()
	if key := keys.find(name, algorithm); key != nil {
		return keys, key, nil
	}
	if keys == nil {
		return nil, nil, &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonIssuerUnavailable, Message: "the keys of the token's issuer cannot be had now: try again", Cause: failed}
	}
	return nil, nil, refuse("the token is signed with a key that its issuer does not have")
}

// find returns the key of a name for an algorithm. A token that names none means the only one there is.
func (s *keySet) find(name, algorithm string) *jose.JSONWebKey {
	if s == nil || name == "" && len(s.keys) != 1 {
		return nil
	}
	for k := range s.keys {
		key := &s.keys[k]
		if (name == "" || key.KeyID == name) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			return key
		}
	}
	return nil
}

// refresh reads the keys, unless that was tried within the interval. What cannot be read leaves them as they are.
func (i *issuer) refresh(ctx context.Context, interval time.Duration) error {
	i.fetch.Lock()
	defer i.fetch.Unlock()
	if time.Since(i.fetched) < interval {
		return nil
	}
	i.fetched = time.Now()
	text, err := i.read(ctx)
	if err == nil {
		err = i.take(text)
	}
	switch {
	case err != nil && !i.failing && ctx.Err() == nil:
		i.log.Error("the keys of an issuer of tokens cannot be read; those that are known go on", "error", err)
	case err == nil && i.failing:
		i.log.Info("the keys of an issuer of tokens are read again")
	}
	i.failing = err != nil
	return err
}

func (i *issuer) read(ctx context.Context) (string, error) {
	if i.JWKSFile != "" {
		data, err := os.ReadFile(i.JWKSFile)
		return string(data), err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.JWKSURL, nil)
	if err != nil {
		return "", err
	}
	response, err := i.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", i.JWKSURL, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxKeysBytes+1))
	if len(data) > maxKeysBytes {
		return "", fmt.Errorf("%s answers more than %d bytes", i.JWKSURL, maxKeysBytes)
	}
	return string(data), err
}

// take takes over what was read: public keys for signatures. Others are left out.
func (i *issuer) take(text string) error {
	if held := i.keys.Load(); held != nil && held.text == text {
		return nil
	}
	var content struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		return fmt.Errorf("it is no set of keys: %w", err)
	}
	set := &keySet{text: text}
	for _, raw := range content.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			set.keys = append(set.keys, key)
		}
	}
	if len(set.keys) == 0 {
		return errors.New("there is no public key for signatures in it")
	}
	i.keys.Store(set)
	return nil
}
