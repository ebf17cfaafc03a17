package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolgrant/toolgrant/internal/auth"
	"github.com/toolgrant/toolgrant/internal/caller"
)

// Authenticates tells whether callers must prove who they are.
func (c *Config) Authenticates() bool {
	return c.APIKeys || len(c.JWTIssuers) > 0 || len(c.MTLSSubjects) > 0
}

// TLS tells whether listeners speak TLS.
func (c *Config) TLS() bool { return c.TLSCertFile != "" }

// served tells what is wrong with an address to listen on: without authentication only this machine may ask, and others
// may not be asked for credentials in plain text.
func (c *Config) served(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("must be host:port, not %q", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("the port must be a number from 0 to 65535, not %q", port)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	if !c.Authenticates() {
		return fmt.Errorf("%q is not a loopback address, and there is no authentication: set api_keys, jwt_issuers or mtls_subjects", address)
	}
	if !c.TLS() && !c.AllowPlaintext {
		return fmt.Errorf("%q is not a loopback address, and there is no TLS: set tls_cert_file and tls_key_file, or allow_plaintext if something in front encrypts", address)
	}
	return nil
}

// needs tells that what is set is of no use without another setting.
func (c *Config) needs(set, other bool, name string) error {
	if set && !other {
		return fmt.Errorf("needs %s, too", name)
	}
	return nil
}

// Issuers are issuers of tokens, written as YAML.
type Issuers []auth.Issuer

// Set implements pflag.Value.
func (l *Issuers) Set(text string) error {
	*l = nil
	if err := parseYAML(text, l); err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range *l {
		of := &(*l)[i]
		of.Role = upper(of.Role)
		for group, role := range of.RoleByGroup {
			of.RoleByGroup[group] = upper(role)
		}
		if err := of.Validate(); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if known[of.Issuer] {
			return fmt.Errorf("[%d]: issuer %q is there twice", i, of.Issuer)
		}
		known[of.Issuer] = true
	}
	return nil
}

// String implements pflag.Value.
func (l Issuers) String() string { return textOf(len(l), l) }

// Type implements pflag.Value.
func (*Issuers) Type() string { return "yaml" }

func (*Issuers) structured() {}

// Subjects are whom certificates prove, written as YAML.
type Subjects []auth.Subject

// Set implements pflag.Value.
func (l *Subjects) Set(text string) error {
	*l = nil
	if err := parseYAML(text, l); err != nil {
		return err
	}
	for i := range *l {
		(*l)[i].Role = upper((*l)[i].Role)
		if err := (*l)[i].Validate(); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// String implements pflag.Value.
func (l Subjects) String() string { return textOf(len(l), l) }

// Type implements pflag.Value.
func (*Subjects) Type() string { return "yaml" }

func (*Subjects) structured() {}

func upper(r caller.Role) caller.Role { return caller.Role(strings.ToUpper(string(r))) }

func parseYAML(text string, into any) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// textOf is a list as YAML; empty: nothing.
func textOf(length int, list any) string {
	if length == 0 {
		return ""
	}
	data, err := yaml.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data))
}

// Origins are those of web pages.
type Origins []string

// Set implements pflag.Value: origins as browsers send them, separated by commas.
func (l *Origins) Set(text string) error {
	*l = nil
	for origin := range strings.SplitSeq(text, ",") {
		if origin = strings.TrimSpace(origin); origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Contains(origin, "*") ||
			origin != u.Scheme+"://"+u.Host || origin != strings.ToLower(origin) {
			return fmt.Errorf("%q is no origin: it must be as browsers send it, such as https://app.example.com", origin)
		}
		*l = append(*l, origin)
	}
	return nil
}

// String implements pflag.Value.
func (l Origins) String() string { return strings.Join(l, ",") }

// Type implements pflag.Value.
func (*Origins) Type() string { return "origins" }
