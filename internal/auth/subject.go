package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Subject says whom certificates prove: those that have the name. One of URI, DNS, Email and CommonName is set; it may
// end in *, for any text of one or more characters.
type Subject struct {
	URI        string `yaml:"uri"`         // of the subject alternative names, such as spiffe://example.com/chat
	DNS        string `yaml:"dns"`         // of the subject alternative names
	Email      string `yaml:"email"`       // of the subject alternative names
	CommonName string `yaml:"common_name"` // of the subject
	// Role is what callers may do.
	Role caller.Role `yaml:"role"`
	// User is whose data a frontend reaches; "*": the text that the * of the name stands for.
	User id.User `yaml:"user"`
}

// Validate tells what is wrong with it.
func (s *Subject) Validate() error {
	named := 0
	for _, pattern := range []string{s.URI, s.DNS, s.Email, s.CommonName} {
		if pattern == "" {
			continue
		}
		named++
		if star := strings.IndexByte(pattern, '*'); star >= 0 && star != len(pattern)-1 {
			return fmt.Errorf("%q: a * may only stand at the end", pattern)
		}
		if pattern == "*" {
			return errors.New("a name must be more than *")
		}
	}
	if named != 1 {
		return errors.New("must have one of uri, dns, email and common_name")
	}
	if s.User == "*" && !strings.HasSuffix(s.URI+s.DNS+s.Email+s.CommonName, "*") {
		return errors.New("user is *, but the name has none")
	}
	return validateRole(s.Role, s.User)
}

func validateRole(role caller.Role, user id.User) error {
	switch role {
	case caller.Admin, caller.Operator, caller.ChatServer, caller.Viewer:
		if user != "" {
			return errors.New("user must be empty unless the role is frontend")
		}
	case caller.Frontend:
		if user == "" {
			return errors.New("a frontend must have a user")
		}
		if user != "*" && !id.Valid(string(user)) {
			return fmt.Errorf("%q is no user's id", user)
		}
	default:
		return fmt.Errorf("there is no role %q", strings.ToLower(string(role)))
	}
	return nil
}

// proveBySubject tells whom a verified certificate proves.
func (a *Authenticator) proveBySubject(connection *tls.ConnectionState) (*caller.Identity, error) {
	if connection == nil || len(connection.VerifiedChains) == 0 {
		return nil, refuse("no credentials: pass them as authorization: Bearer ..., or connect with a certificate")
	}
	certificate := connection.VerifiedChains[0][0]
	if now := time.Now(); now.After(certificate.NotAfter) { // the connection may be older than that
		return nil, refuse("the certificate has expired")
	}
	for i := range a.Subjects {
		if who := a.Subjects[i].prove(certificate); who != nil {
			return who, nil
		}
	}
	return nil, refuse("the certificate is good, but nobody of its names is known here")
}

func (s *Subject) prove(certificate *x509.Certificate) *caller.Identity {
	var names []string
	pattern := s.URI + s.DNS + s.Email + s.CommonName
	switch {
	case s.URI != "":
		for _, uri := range certificate.URIs {
			names = append(names, uri.String())
		}
	case s.DNS != "":
		names = certificate.DNSNames
	case s.Email != "":
		names = certificate.EmailAddresses
	default:
		names = []string{certificate.Subject.CommonName}
	}
	for _, name := range names {
		rest, ok := matches(pattern, name)
		if !ok {
			continue
		}
		user := s.User
		if user == "*" {
			user = id.User(rest)
		}
		if user != "" && !id.Valid(string(user)) {
			continue
		}
		return &caller.Identity{Actor: "mtls:" + name, Role: s.Role, User: user}
	}
	return nil
}

// matches tells whether a name is what a pattern says, and what its * stands for.
func matches(pattern, name string) (rest string, ok bool) {
	prefix, open := strings.CutSuffix(pattern, "*")
	if !open {
		return "", name == pattern && name != ""
	}
	rest, ok = strings.CutPrefix(name, prefix)
	return rest, ok && rest != ""
}
