package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// trust is how toolctl knows the server, and how it proves who it is.
type trust struct {
	tls                   bool
	caFile                string
	certFile, certKeyFile string
	tokenFile             string
	token                 string // of the environment: flags can be seen by other users of the machine
	serverName            string
}

func (t *trust) flags(root *cobra.Command) {
	t.token = os.Getenv("TOOLGRANT_TOKEN")
	flags := root.PersistentFlags()
	flags.StringVar(&t.tokenFile, "token-file", os.Getenv("TOOLGRANT_TOKEN_FILE"), "a file with an API key or a token (JWT) to call with (TOOLGRANT_TOKEN_FILE; or the key itself in TOOLGRANT_TOKEN)")
	flags.BoolVar(&t.tls, "tls", os.Getenv("TOOLGRANT_TLS") == "true", "speak TLS (TOOLGRANT_TLS=true); --ca-file and --cert-file imply it")
	flags.StringVar(&t.caFile, "ca-file", os.Getenv("TOOLGRANT_CA_FILE"), "a PEM file with the authorities of the server's certificate (TOOLGRANT_CA_FILE; default: the system's)")
	flags.StringVar(&t.certFile, "cert-file", os.Getenv("TOOLGRANT_CERT_FILE"), "a PEM file with a certificate to call with (TOOLGRANT_CERT_FILE)")
	flags.StringVar(&t.certKeyFile, "key-file", os.Getenv("TOOLGRANT_KEY_FILE"), "a PEM file with the key of --cert-file (TOOLGRANT_KEY_FILE)")
	flags.StringVar(&t.serverName, "server-name", os.Getenv("TOOLGRANT_SERVER_NAME"), "the name in the server's certificate, if it is not that of --addr (TOOLGRANT_SERVER_NAME)")
	complete(root, "server-name", cobra.NoFileCompletions)
}

// transport is how connections are secured.
func (t *trust) transport() (credentials.TransportCredentials, error) {
	if !t.tls && t.caFile == "" && t.certFile == "" {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName}
	if t.caFile != "" {
		pem, err := os.ReadFile(t.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca-file: there is no certificate in %s", t.caFile)
		}
	}
	if t.certFile != "" || t.certKeyFile != "" {
		if t.certFile == "" || t.certKeyFile == "" {
			return nil, errors.New("--cert-file and --key-file belong together")
		}
		certificate, err := tls.LoadX509KeyPair(t.certFile, t.certKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--cert-file: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return credentials.NewTLS(config), nil
}

// bearer is what every call carries; nil: nothing. A file beats the environment.
func (t *trust) bearer() (credentials.PerRPCCredentials, error) {
	token := t.token
	if t.tokenFile != "" {
		data, err := os.ReadFile(t.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		token = string(data)
	}
	if token = strings.TrimSpace(token); token == "" {
		return nil, nil
	}
	return bearer(token), nil
}

// proves tells whether the server learns by credentials who calls.
func (t *trust) proves() bool { return t.token != "" || t.tokenFile != "" || t.certFile != "" }

type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. On loopback there is mostly none, and elsewhere the
// server refuses to listen without, unless something in front of it encrypts.
func (bearer) RequireTransportSecurity() bool { return false }
