package config

import (
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
)

const issuer = `{issuer: "https://a.example", jwks_url: "https://a.example/keys", audiences: [toolgrant], role: frontend, clock_skew: 10s, role_by_group: {ops: operator}}`

func TestListsAreWrittenAsYAML(t *testing.T) {
	subjects := "[{common_name: chat, role: chat_server}]"
	file := writeFile(t, "tls_cert_file: c\ntls_key_file: k\ntls_client_ca_file: a\njwt_issuers:\n  - "+issuer+"\nmtls_subjects: "+subjects+"\n")
	t.Setenv("TOOLGRANT_MTLS_SUBJECTS", "")
	c, err := load(t, "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	of := c.JWTIssuers[0]
	if len(c.JWTIssuers) != 1 || of.Role != caller.Frontend || of.ClockSkew != 10*time.Second || of.RoleByGroup["ops"] != caller.Operator || of.Audiences[0] != "toolgrant" {
		t.Errorf("got %+v", c.JWTIssuers)
	}
	if len(c.MTLSSubjects) != 1 || c.MTLSSubjects[0].Role != caller.ChatServer || !c.Authenticates() || !c.TLS() {
		t.Errorf("got %+v", c.MTLSSubjects)
	}
	t.Setenv("TOOLGRANT_JWT_ISSUERS", "["+strings.Replace(issuer, "a.example", "b.example", 1)+"]")
	if c, err = load(t, "--config", file); err != nil || c.JWTIssuers[0].Issuer != "https://b.example" {
		t.Errorf("the environment beats the file: %+v %v", c.JWTIssuers, err)
	}
}

func TestAuthenticationThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"there is no authentication", []string{"--grpc-addr=0.0.0.0:1"}},
		{"there is no TLS", []string{"--api-keys", "--http-addr=:1"}},
		{"needs tls_key_file", []string{"--tls-cert-file=c"}},
		{"needs tls_cert_file", []string{"--tls-key-file=k"}},
		{"needs api_keys", []string{"--admin-key-file=f"}},
		{"needs tls_client_ca_file", []string{"--mtls-subjects=[{dns: a, role: viewer}]"}},
		{"needs authentication", []string{"--cors-origins=https://a.example"}},
		{`"https://*.example"`, []string{"--cors-origins=https://*.example"}},
		{`"https://a.example/"`, []string{"--cors-origins=https://a.example/"}},
		{`"*"`, []string{"--cors-origins=*"}},
		{`no role "king"`, []string{"--mtls-subjects=[{dns: a, role: king}]"}},
		{"rolle", []string{"--mtls-subjects=[{dns: a, rolle: viewer}]"}},
		{"there twice", []string{"--jwt-issuers=[" + issuer + ", " + issuer + "]"}},
		{"HS256", []string{"--jwt-issuers=[{issuer: a, jwks_file: f, audiences: [b], role: viewer, algorithms: [HS256]}]"}},
	} {
		if _, err := load(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %s", test.args, err, test.want)
		}
	}
	for _, args := range [][]string{
		{"--api-keys", "--allow-plaintext", "--grpc-addr=0.0.0.0:1"},
		{"--api-keys", "--tls-cert-file=c", "--tls-key-file=k", "--grpc-addr=0.0.0.0:1", "--http-addr=[::]:2", "--cors-origins=https://a.example, http://127.0.0.1:8000"},
	} {
		if _, err := load(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}
