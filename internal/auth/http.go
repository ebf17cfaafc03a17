package auth

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
)

// OfRequest tells who makes a request over HTTP.
func (a *Authenticator) OfRequest(r *http.Request) (*caller.Identity, error) {
	values := r.Header.Values("Authorization")
	if len(values) > 1 {
		return nil, refuse("there is more than one authorization")
	}
	return a.Prove(r.Context(), strings.Join(values, ""), r.TLS)
}

// Require lets those through who have one of the roles, or admin's. A nil Authenticator lets everybody through.
func (a *Authenticator) Require(next http.Handler, roles ...caller.Role) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := a.OfRequest(r)
		if err != nil {
			unauthorized(w, err)
			return
		}
		if who.Role != caller.Admin && !slices.Contains(roles, who.Role) {
			http.Error(w, "the role "+strings.ToLower(string(who.Role))+" may not ask for this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func unauthorized(w http.ResponseWriter, err error) {
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unauthenticated {
		http.Error(w, "it cannot be told now who asks: try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="toolgrant"`)
	http.Error(w, f.Message, http.StatusUnauthorized)
}

// Headers of requests to the MCP endpoint. The second is set here and never taken from a client.
const (
	headerUser        = "Toolgrant-User"
	headerCertificate = "Toolgrant-Client-Certificate"
)

// recheckInterval is how often the credentials of a request that lasts are looked at again.
const recheckInterval = time.Second

// MCP lets requests to the MCP endpoint through whose credentials are good and, if they are one user's, name no other:
// such a client need not say who it is. What it proved is passed on. Requests that last end with their credentials.
func (a *Authenticator) MCP(next http.Handler) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := a.OfRequest(r)
		if err != nil {
			unauthorized(w, err)
			return
		}
		if who.Role == caller.Frontend {
			if named := r.Header.Get(headerUser); named != "" && named != string(who.User) || len(r.Header.Values(headerUser)) > 1 {
				http.Error(w, "these credentials are of user "+string(who.User)+" only", http.StatusForbidden)
				return
			}
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		asked := r.Clone(ctx)
		if who.Role == caller.Frontend {
			asked.Header.Set(headerUser, string(who.User))
		}
		asked.Header.Del(headerCertificate)
		if asked.Header.Get("Authorization") == "" && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			asked.Header.Set(headerCertificate, base64.StdEncoding.EncodeToString(r.TLS.VerifiedChains[0][0].Raw))
		}
		go a.endWhenRefused(ctx, cancel, r)
		next.ServeHTTP(w, asked)
	})
}

func (a *Authenticator) endWhenRefused(ctx context.Context, end context.CancelFunc, r *http.Request) {
	ticker := time.NewTicker(recheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, err := a.OfRequest(r)
			if f, ok := fault.As(err); ok && f.Kind == fault.Unauthenticated {
				end()
				return
			}
		}
	}
}
