package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	// File is its own certificate.
	File        string
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes one, good for an hour.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, File: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, key := sign(t, template, nil, nil)
	a.key = key
	var err error
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Sign writes a certificate and its key to two files, and returns them. A template without names is for 127.0.0.1 and
// localhost.
func (a *Authority) Sign(template *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	dir := a.t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.SignTo(template, certFile, keyFile)
	return certFile, keyFile
}

// SignTo is Sign into files that may exist.
func (a *Authority) SignTo(template *x509.Certificate, certFile, keyFile string) {
	a.t.Helper()
	if template.Subject.CommonName == "" && template.URIs == nil && template.DNSNames == nil && template.EmailAddresses == nil {
		template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, key := sign(a.t, template, a.certificate, a.key)
	writePEM(a.t, certFile, "CERTIFICATE", der)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, keyFile, "PRIVATE KEY", keyDER)
}

// URI is a name of a certificate.
func URI(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// sign makes a certificate with a new key; without a parent it is its own.
func sign(t testing.TB, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// writePEM replaces a file in one step.
func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
