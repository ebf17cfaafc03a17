// Package redisurl reads the address of a Redis. It stands apart from the client, so that settings can be
// checked without one.
package redisurl

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Kind is how a Redis stays available.
type Kind int

// Kinds of a Redis.
const (
	Single   Kind = iota
	Cluster       // its nodes share the keys, and replicas take over
	Sentinel      // one master, and Sentinels that know who it is
)

// Address is where a Redis is, and how to sign in.
type Address struct {
	Kind     Kind
	Hosts    []string // host:port; some nodes of a Cluster, or Sentinels. Or one path of a socket, from /
	Username string
	Password string
	Database int // a Cluster has only number 0
	TLS      bool

	// With Sentinels: what they call the master, and how to sign in to them.
	Master           string
	SentinelUsername string
	SentinelPassword string
}

const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// Parse reads
//
//	redis://user:password@host:port/database
//	redis-cluster://user:password@host:port,host:port    nodes of a Cluster: one that answers is enough
//	redis-sentinel://user:password@host:port,host:port/master-name?db=database
//	unix://user:password@/path/to/socket?db=database
//	redis://user:password@host:port,host:port            a Cluster, too
//	host:port,host:port                                  the same, without a password
//
// With rediss in place of redis, all connections use TLS. User and password are those of Redis; Sentinels that
// want some get sentinel_user and sentinel_password, beside db.
//
// Errors name the part at fault and don't quote it: where a password has a special character that is not
// written as %XX, any part may be the password's.
func Parse(text string) (*Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "redis", text
		if !strings.Contains(text, ",") {
			return nil, errors.New("scheme: must be there, as in redis://, unless it is a list of addresses")
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
	plain := strings.Replace(scheme, "rediss", "redis", 1)
	a.TLS = plain != scheme
	switch plain {
	case "unix":
		err = a.socket(hosts, u)
	case "redis":
		err = a.network(hosts, u)
	case "redis-cluster":
		a.Kind = Cluster
		err = a.network(hosts, u)
	case "redis-sentinel":
		a.Kind = Sentinel
		err = a.sentinels(hosts, u)
	default:
		err = errors.New("scheme: must be redis, redis-cluster or redis-sentinel, rediss in place of redis for TLS, or unix")
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
	values, err := query(u, "db")
	if err != nil {
		return err
	}
	return a.setDatabase(values.Get("db"))
}

func (a *Address) network(hosts string, u *url.URL) error {
	if _, err := query(u); err != nil {
		return err
	}
	if err := a.setHosts(hosts, redisPort); err != nil {
		return err
	}
	if err := a.setDatabase(strings.TrimPrefix(u.Path, "/")); err != nil {
		return err
	}
	if len(a.Hosts) > 1 {
		a.Kind = Cluster
	}
	if a.Kind == Cluster && a.Database != 0 {
		return errors.New("database: a Cluster has only number 0")
	}
	return nil
}

func (a *Address) sentinels(hosts string, u *url.URL) error {
	values, err := query(u, "db", "sentinel_user", "sentinel_password")
	if err != nil {
		return err
	}
	if err := a.setHosts(hosts, sentinelPort); err != nil {
		return err
	}
	a.Master = strings.TrimPrefix(u.Path, "/")
	if a.Master == "" || strings.Contains(a.Master, "/") {
		return errors.New("path: must be what the Sentinels call the master, as in redis-sentinel://host/mymaster")
	}
	a.SentinelUsername, a.SentinelPassword = values.Get("sentinel_user"), values.Get("sentinel_password")
	return a.setDatabase(values.Get("db"))
}

// query reads the part after "?", each name of which may be there once.
func query(u *url.URL, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("query: must be name=value, with special characters as %XX")
	}
	for name, all := range values {
		switch {
		case len(known) == 0:
			return nil, errors.New("query: must be empty")
		case !slices.Contains(known, name):
			return nil, errors.New("query: only these are known: " + strings.Join(known, ", "))
		case len(all) > 1:
			return nil, errors.New("query: must have each name once")
		}
	}
	return values, nil
}

func (a *Address) setHosts(hosts, defaultPort string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		address, err := hostPort(host, defaultPort)
		if err != nil {
			return err
		}
		a.Hosts = append(a.Hosts, address)
	}
	return nil
}

func hostPort(text, defaultPort string) (string, error) {
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
