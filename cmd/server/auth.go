package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/auth"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// trust is how a server knows its callers, and they it.
type trust struct {
	authenticator *auth.Authenticator // nil: nobody is asked
	uses          apikey.Uses
	tokens        *auth.Tokens       // nil: none are taken
	certificates  *auth.Certificates // nil: no TLS
	own           *auth.Own          // how the server calls itself
	store         *postgres.Store
	log           *slog.Logger
}

func newTrust(c *config.Config, memory *replica.Replica, store *postgres.Store, log *slog.Logger) (*trust, error) {
	t := &trust{own: auth.NewOwn(), store: store, log: log}
	if c.TLS() {
		var err error
		if t.certificates, err = auth.LoadCertificates(c.TLSCertFile, c.TLSKeyFile, c.TLSClientCAFile, log); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
	}
	if !c.Authenticates() {
		return t, nil
	}
	o := auth.Options{Subjects: c.MTLSSubjects}
	if c.APIKeys {
		o.Keys, o.CatchUp, o.Uses = memory.Keys, memory.CatchUp, &t.uses
	}
	if c.AdminKeyFile != "" {
		hash, err := adminKey(c.AdminKeyFile, log)
		if err != nil {
			return nil, fmt.Errorf("admin_key_file: %w", err)
		}
		o.AdminKey = &hash
	}
	if len(c.JWTIssuers) > 0 {
		var err error
		if t.tokens, err = auth.NewTokens(c.JWTIssuers, log); err != nil {
			return nil, fmt.Errorf("jwt_issuers: %w", err)
		}
		o.Tokens = t.tokens
	}
	t.authenticator = auth.New(o)
	return t, nil
}

// adminKey reads the key of a file. If there is no such file it makes one, which only this user can read.
func adminKey(path string, log *slog.Logger) (apikey.Hash, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		hash, ok := apikey.HashOf(strings.TrimSpace(string(data)))
		if !ok {
			return hash, fmt.Errorf("%s: there is no API key in it: it must be %s and 43 characters; delete the file, and it is made anew", path, apikey.Prefix)
		}
		log.Warn("whoever has the key of a file may do everything; when there is another key of the role admin, take the setting away", "admin_key_file", path)
		return hash, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return apikey.Hash{}, err
	}
	secret, hash := apikey.NewSecret()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return hash, err
	}
	_, err = fmt.Fprintln(file, secret)
	if err = errors.Join(err, file.Close()); err == nil {
		log.Warn("a key that may do everything was made and written to a file", "admin_key_file", path)
	}
	return hash, err
}

// authenticate is what the gRPC server asks who calls; nil: nothing.
func (t *trust) authenticate() grpcserver.Authenticate {
	if t.authenticator == nil {
		return nil
	}
	return t.authenticator.OfCall
}

// serverOption is the listeners' security. With TLS, gRPC is the only protocol that they speak.
func (t *trust) serverOption() grpc.ServerOption {
	others := insecure.NewCredentials()
	if t.certificates != nil {
		others = credentials.NewTLS(t.certificates.Config("h2"))
	}
	return grpc.Creds(auth.Credentials(others))
}

// secure gives a web server its TLS, and returns how its addresses begin, and what serves it.
func (t *trust) secure(web *http.Server) (scheme string, serve func(net.Listener) error) {
	if t.certificates == nil {
		return "http", web.Serve
	}
	web.TLSConfig = t.certificates.Config("h2", "http/1.1")
	return "https", func(l net.Listener) error { return web.ServeTLS(l, "", "") }
}

// dial connects the server to itself.
func (t *trust) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///own", grpc.WithContextDialer(t.own.Dial), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

// inspect lets those through who may look at the insides of the process.
func (t *trust) inspect(next http.Handler) http.Handler {
	return t.authenticator.Require(next, caller.Operator, caller.Viewer)
}

// tell says at the start how callers are known.
func (t *trust) tell(c *config.Config) {
	var ways []string
	if c.APIKeys {
		ways = append(ways, "API keys")
	}
	if len(c.JWTIssuers) > 0 {
		ways = append(ways, fmt.Sprintf("JWTs of %d issuers", len(c.JWTIssuers)))
	}
	if len(c.MTLSSubjects) > 0 {
		ways = append(ways, "certificates")
	}
	if ways == nil {
		t.log.Warn("there is no authentication: whoever can reach these addresses on this machine may do everything")
		return
	}
	t.log.Info("callers are known by " + strings.Join(ways, ", "))
	if t.certificates == nil {
		t.log.Warn("there is no TLS: credentials are read by whoever reads what is sent")
	}
}

const usesInterval = time.Minute

// run keeps keys and certificates up to date, and notes which API keys are used, until ctx ends.
func (t *trust) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	if t.certificates != nil {
		group.Go(func() { t.certificates.Run(ctx) })
	}
	if t.tokens != nil {
		group.Go(func() { t.tokens.Run(ctx) })
	}
	ticker := time.NewTicker(usesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
			defer cancel()
			t.noteUses(limit)
			return
		case <-ticker.C:
			t.noteUses(ctx)
		}
	}
}

func (t *trust) noteUses(ctx context.Context) {
	uses := t.uses.Take()
	if len(uses) == 0 {
		return
	}
	if err := t.store.RecordAPIKeyUses(ctx, uses); err != nil {
		t.uses.Return(uses)
		t.log.WarnContext(ctx, "it could not be noted when API keys were used; it will be tried again", "error", err)
	}
}
