package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Certificates are a server's certificate and key, and the authorities of its clients' certificates, as their files have
// them. They change together or not at all.
type Certificates struct {
	files   [3]string // certificate, key, authorities (empty: clients are not asked for certificates)
	log     *slog.Logger
	current atomic.Pointer[loaded]
	refused *[3][]byte // what was read last and not taken; nil: all was
}

type loaded struct {
	content [3][]byte
	config  *tls.Config
}

// certificatesInterval is how often the files are read.
const certificatesInterval = 5 * time.Second

// LoadCertificates reads them. The authorities' file may be empty.
func LoadCertificates(certFile, keyFile, clientCAFile string, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{files: [3]string{certFile, keyFile, clientCAFile}, log: log}
	content, err := c.read()
	if err != nil {
		return nil, err
	}
	next, err := load(content)
	if err != nil {
		return nil, err
	}
	c.current.Store(next)
	return c, nil
}

// Config is for listeners. Each connection gets the certificate of the moment.
func (c *Certificates) Config(protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := c.current.Load().config.Clone()
		config.NextProtos = protocols
		return config, nil
	}}
}

// Run looks whether the files changed, until ctx ends. What cannot be used is logged, and leaves all as it was.
func (c *Certificates) Run(ctx context.Context) {
	ticker := time.NewTicker(certificatesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.reload()
		}
	}
}

func (c *Certificates) reload() {
	content, err := c.read()
	held := c.current.Load().content
	switch {
	case err == nil && equal(content, held):
		c.refused = nil
		return
	case c.refused != nil && equal(content, *c.refused):
		return // that was said
	}
	var next *loaded
	if err == nil {
		next, err = load(content)
	}
	if err != nil {
		c.refused = &content
		c.log.Error("the new certificate cannot be used; the old one stays", "error", err)
		return
	}
	c.refused = nil
	c.current.Store(next)
	c.log.Info("new connections get another certificate", "expires", next.config.Certificates[0].Leaf.NotAfter)
}

func equal(a, b [3][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (c *Certificates) read() (content [3][]byte, err error) {
	for i, file := range c.files {
		if file == "" {
			continue
		}
		data, e := os.ReadFile(file)
		content[i], err = data, errors.Join(err, e)
	}
	return content, err
}

// load makes what listeners use of the files' content.
func load(content [3][]byte) (*loaded, error) {
	certificate, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return nil, fmt.Errorf("certificate and key: %w", err)
	}
	if time.Now().After(certificate.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificate expired at %s", certificate.Leaf.NotAfter)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if content[2] != nil {
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(content[2]) {
			return nil, errors.New("there is no certificate in the file of the clients' authorities")
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
		config.SessionTicketsDisabled = true // a resumed session would outlive its authority
	}
	return &loaded{content: content, config: config}, nil
}
