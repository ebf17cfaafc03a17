package redisurl

import (
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Address{
		"redis://localhost":           {Hosts: []string{"localhost:6379"}},
		"redis://localhost:6380/":     {Hosts: []string{"localhost:6380"}},
		"redis://10.0.0.1:1/3":        {Hosts: []string{"10.0.0.1:1"}, Database: 3},
		"redis://[::1]":               {Hosts: []string{"[::1]:6379"}},
		"redis://[::1]:7/0":           {Hosts: []string{"[::1]:7"}},
		"rediss://:p%40%2F%2C@h":      {Hosts: []string{"h:6379"}, Password: "p@/,", TLS: true},
		"redis://u:p@h:1,[::2]:2,i/0": {Kind: Cluster, Hosts: []string{"h:1", "[::2]:2", "i:6379"}, Username: "u", Password: "p"},
		"redis://u:a,b@h:1,i:2":       {Kind: Cluster, Hosts: []string{"h:1", "i:2"}, Username: "u", Password: "a,b"},
		"a:1,b:2":                     {Kind: Cluster, Hosts: []string{"a:1", "b:2"}},
		"a,b":                         {Kind: Cluster, Hosts: []string{"a:6379", "b:6379"}},
		"redis-cluster://u:p@h":       {Kind: Cluster, Hosts: []string{"h:6379"}, Username: "u", Password: "p"},
		"rediss-cluster://h:1,i:2/0":  {Kind: Cluster, Hosts: []string{"h:1", "i:2"}, TLS: true},
		"redis-sentinel://h/m":        {Kind: Sentinel, Hosts: []string{"h:26379"}, Master: "m"},
		"rediss-sentinel://u:p@h:1,i/my%2Em?db=3&sentinel_user=s&sentinel_password=p%26q": {Kind: Sentinel,
			Hosts: []string{"h:1", "i:26379"}, Username: "u", Password: "p", Database: 3, TLS: true,
			Master: "my.m", SentinelUsername: "s", SentinelPassword: "p&q"},
		"unix:///run/redis.sock":               {Hosts: []string{"/run/redis.sock"}},
		"unix://u:p@/run/my%20redis.sock?db=2": {Hosts: []string{"/run/my redis.sock"}, Username: "u", Password: "p", Database: 2},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:6379":            "scheme: must be there, as in redis://, unless it is a list of addresses",
		"http://h:1":                "scheme: must be redis, redis-cluster or redis-sentinel",
		"redissentinel://h:1/m":     "scheme: must be redis, redis-cluster or redis-sentinel",
		"redis://":                  "host: must be host or host:port",
		"redis://:secret@:6379":     "host: must be host or host:port",
		"a:1,,b:2":                  "host: must be host or host:port",
		"redis://::1":               "host: must be host or host:port",
		"redis://a:1,redis://b:2":   "port: must be a number from 1 to 65535",
		"redis://h:":                "port: must be a number from 1 to 65535",
		"redis://h:0":               "port: must be a number from 1 to 65535",
		"redis://u:secret@h:70000":  "port: must be a number from 1 to 65535",
		"redis://h:1,i:x":           "port: must be a number from 1 to 65535",
		"redis://h/x":               "database: must be a number from 0 on",
		"redis://h/-1":              "database: must be a number from 0 on",
		"redis://h:1,i:1/2":         "database: a Cluster has only number 0",
		"redis://h?db=1":            "query: must be empty",
		"unix:///s?db=x":            "database: must be a number from 0 on",
		"redis-cluster://h/1":       "database: a Cluster has only number 0",
		"unix:///s?bd=1":            "query: only these are known: db",
		"unix:///s?db=1&db=2":       "query: must have each name once",
		"unix:///s?db=%":            "query: must be name=value",
		"redis-sentinel://h":        "path: must be what the Sentinels call the master",
		"redis-sentinel://h/m/1":    "path: must be what the Sentinels call the master",
		"redis-sentinel:///m":       "host: must be host or host:port",
		"redis-sentinel://h/m?db=x": "database: must be a number from 0 on",
		"redis-sentinel://h/m?sentinel_passwort=secret": "query: only these are known: db, sentinel_user, sentinel_password",
		"unix://run/redis.sock":                         "path: must be absolute",
		"unix://":                                       "path: must be absolute",
		"redis://:secret%@h":                            "must be a URL: write special characters",
		"redis://h/0#secret":                            `must have no part after "#"`,
		"redis://:secret#more@h:1":                      "", // the rest of the password is taken for a fragment
		"redis://:secret/more@h:1":                      "", // or for a database
		"redis://user:secret?x@h:10":                    "",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// FuzzParse checks that every address is one to dial, and that no error quotes any of the text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"redis://u:p@h:1/2", "rediss-cluster://h,[::1]:7", "redis-sentinel://h:1,i/m?db=3&sentinel_user=u",
		"unix://u:p@/s?db=2", "a:1,b:2", "redis://:%zz@h#x"} {
		f.Add(text)
	}
	parts := []string{"scheme: ", "host: ", "port: ", "path: ", "query: ", "database: ", "must be a URL: ", "must have no part "}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text + "\x01secret")
		if err == nil {
			check(t, a)
		} else if strings.Contains(err.Error(), "\x01") || !slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(err.Error(), part) }) {
			t.Errorf("%q", err)
		}
		if a, err := Parse(text); err == nil {
			check(t, a)
		}
	})
}

func check(t *testing.T, a *Address) {
	t.Helper()
	if len(a.Hosts) == 0 || a.Database < 0 || (a.Kind == Sentinel) != (a.Master != "") || (a.Kind == Cluster && a.Database != 0) ||
		(a.Kind == Single && len(a.Hosts) > 1) {
		t.Errorf("%+v", a)
	}
	for _, host := range a.Hosts {
		if _, port, err := net.SplitHostPort(host); !strings.HasPrefix(host, "/") && (err != nil || port == "") {
			t.Errorf("%q: %v", host, err)
		}
	}
}
