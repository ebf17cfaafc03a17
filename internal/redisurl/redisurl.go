// Package redisurl reads the address of a Redis. It stands apart from the client, so that settings can be
// checked without one.
package redisurl

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Address is where a Redis is, and how to sign in.
type Address struct {
	Hosts    []string // host:port; more than one: nodes of a Cluster. Or one path of a socket, from /
	Username string
	Password string
	Database int // a Cluster has only number 0
	TLS      bool
}

// Cluster tells whether it is a Redis Cluster.
func (a *Address) Cluster() bool { return len(a.Hosts) > 1 }

const defaultPort = "6379"

// Parse reads
//
//	redis://user:password@host:port/database     (rediss:// with TLS)
//	redis://user:password@host:port,host:port    nodes of a Cluster: some of them are enough
//	host:port,host:port                          the same, without a password
//	unix://user:password@/path/to/socket?db=database
//
// Errors name the part at fault and don't quote it: where a password has a special character that is not
// written as %XX, any part may be the password's.
func Parse(text string) (*Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "redis", text
		if !strings.Contains(text, ",") {
			return nil, errors.New("scheme: must be redis://, rediss:// or unix://, unless it is a list of addresses")
		}
	}
	// A list of hosts is no URL, so it is cut out first.
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	userinfo, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		userinfo, hosts = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse("redis://" + userinfo + path)
	if err != nil {
		return nil, errors.New("must be a URL: write special characters of user name, password and path as %XX")
	}
	a := &Address{Username: u.User.Username()}
	a.Password, _ = u.User.Password()
	if u.Fragment != "" {
		return nil, errors.New(`must have no part after "#": write it as %23 if it belongs to the password`)
	}
	switch scheme {
	case "unix":
		err = a.socket(hosts, u)
	case "redis", "rediss":
		a.TLS = scheme == "rediss"
		err = a.network(hosts, u)
	default:
		err = errors.New("scheme: must be redis, rediss or unix")
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Address) socket(host string, u *url.URL) error {
	if host != "" || u.Path == "" {
		return errors.New("path: must be absolute, as in unix:///run/redis.sock")
	}
	a.Hosts = []string{u.Path}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("query: must be db=number")
	}
	database := query.Get("db")
	if query.Del("db"); len(query) > 0 {
		return errors.New("query: only db is known")
	}
	return a.setDatabase(database)
}

func (a *Address) network(hosts string, u *url.URL) error {
	if u.RawQuery != "" {
		return errors.New("query: must be empty")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		address, err := hostPort(host)
		if err != nil {
			return err
		}
		a.Hosts = append(a.Hosts, address)
	}
	if err := a.setDatabase(strings.TrimPrefix(u.Path, "/")); err != nil {
		return err
	}
	if a.Cluster() && a.Database != 0 {
		return errors.New("database: a Cluster has only number 0")
	}
	return nil
}

func hostPort(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port, err = net.SplitHostPort(text + ":" + defaultPort)
	}
	if err != nil || host == "" {
		return "", errors.New("host: must be host or host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("port: must be a number from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

func (a *Address) setDatabase(text string) (err error) {
	if text == "" {
		return nil
	}
	if a.Database, err = strconv.Atoi(text); err != nil || a.Database < 0 {
		return errors.New("database: must be a number from 0 on")
	}
	return nil
}
