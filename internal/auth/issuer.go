package auth

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Issuer is who signs tokens that are taken, and what they mean here.
type Issuer struct {
	// Issuer is the tokens' iss, letter for letter.
	Issuer string `yaml:"issuer"`
	// Name is what the audit log calls it. Default: the issuer's host.
	Name string `yaml:"name"`
	// JWKSURL and JWKSFile are where its keys are; one of them.
	JWKSURL  string `yaml:"jwks_url"`
	JWKSFile string `yaml:"jwks_file"`
	// Audiences are those of which a token must name one in aud.
	Audiences []string `yaml:"audiences"`
	// Algorithms are those of signatures that are taken. Default: RS256, ES256 and EdDSA.
	Algorithms []string `yaml:"algorithms"`
	// ClockSkew is how far its clock and this server's may be apart. Default: 30 s.
	ClockSkew time.Duration `yaml:"clock_skew"`
	// Refresh is how often its keys are read anew. Default: 5 min. A key that it takes back holds until then.
	Refresh time.Duration `yaml:"refresh"`
	// UserClaim says who it is. Default: sub.
	UserClaim string `yaml:"user_claim"`
	// RoleClaim, if a token has it, names its role.
	RoleClaim string `yaml:"role_claim"`
	// GroupsClaim names groups. Default: groups.
	GroupsClaim string `yaml:"groups_claim"`
	// RoleByGroup gives roles to tokens without a RoleClaim; of several groups the strongest role counts.
	RoleByGroup map[string]caller.Role `yaml:"role_by_group"`
	// Role is that of tokens that have no other.
	Role caller.Role `yaml:"role"`
}

func (i *Issuer) setDefaults() {
	if i.Name == "" {
		if u, err := url.Parse(i.Issuer); err == nil && u.Host != "" {
			i.Name = u.Host
		} else {
			i.Name = printable(i.Issuer)
		}
	}
	if len(i.Algorithms) == 0 {
		for _, a := range defaultAlgorithms {
			i.Algorithms = append(i.Algorithms, string(a))
		}
	}
	if i.ClockSkew == 0 {
		i.ClockSkew = 30 * time.Second
	}
	if i.Refresh == 0 {
		i.Refresh = 5 * time.Minute
	}
	if i.UserClaim == "" {
		i.UserClaim = "sub"
	}
	if i.GroupsClaim == "" {
		i.GroupsClaim = "groups"
	}
}

// Validate tells what is wrong with it.
func (i *Issuer) Validate() error {
	switch {
	case i.Issuer == "":
		return errors.New("issuer must be set")
	case (i.JWKSURL == "") == (i.JWKSFile == ""):
		return errors.New("must have one of jwks_url and jwks_file")
	case len(i.Audiences) == 0:
		return errors.New("audiences must name this server: tokens that are meant for others are not taken")
	case i.ClockSkew < 0 || i.ClockSkew > 5*time.Minute:
		return errors.New("clock_skew must be at most 5m")
	case i.Refresh != 0 && (i.Refresh < time.Second || i.Refresh > 24*time.Hour):
		return errors.New("refresh must be 1s to 24h")
	case i.Name != "" && !id.Valid(i.Name):
		return fmt.Errorf("name: %q is no identifier", i.Name)
	case i.RoleClaim == "" && len(i.RoleByGroup) == 0 && i.Role == "":
		return errors.New("must have role, role_by_group or role_claim")
	}
	for _, name := range i.Algorithms {
		if !slices.Contains(algorithms, jose.SignatureAlgorithm(name)) {
			return fmt.Errorf("algorithms: %q is none of %v", name, algorithms)
		}
	}
	for group, role := range i.RoleByGroup {
		if !slices.Contains(caller.Roles, role) {
			return fmt.Errorf("role_by_group: %s: there is no role %q", group, strings.ToLower(string(role)))
		}
	}
	if i.Role != "" && !slices.Contains(caller.Roles, i.Role) {
		return fmt.Errorf("there is no role %q", strings.ToLower(string(i.Role)))
	}
	if i.JWKSURL != "" {
		return validateJWKSURL(i.JWKSURL)
	}
	return nil
}

// validateJWKSURL: whoever can change keys on the way is everybody. On this machine there is no way.
func validateJWKSURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return fmt.Errorf("jwks_url: %q is no URL", text)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("jwks_url: %q must be https", text)
	}
	return nil
}
