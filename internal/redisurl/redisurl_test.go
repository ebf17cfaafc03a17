package redisurl

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Address{
		"redis://localhost":                    {Hosts: []string{"localhost:6379"}},
		"redis://localhost:6380/":              {Hosts: []string{"localhost:6380"}},
		"redis://10.0.0.1:1/3":                 {Hosts: []string{"10.0.0.1:1"}, Database: 3},
		"redis://[::1]":                        {Hosts: []string{"[::1]:6379"}},
		"redis://[::1]:7/0":                    {Hosts: []string{"[::1]:7"}},
		"rediss://:p%40%2F%2C@h":               {Hosts: []string{"h:6379"}, Password: "p@/,", TLS: true},
		"redis://u:p@h:1,[::2]:2,i/0":          {Hosts: []string{"h:1", "[::2]:2", "i:6379"}, Username: "u", Password: "p"},
		"redis://u:a,b@h:1,i:2":                {Hosts: []string{"h:1", "i:2"}, Username: "u", Password: "a,b"},
		"a:1,b:2":                              {Hosts: []string{"a:1", "b:2"}},
		"a,b":                                  {Hosts: []string{"a:6379", "b:6379"}},
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
		"localhost:6379":             "scheme: must be redis://, rediss:// or unix://, unless it is a list of addresses",
		"http://h:1":                 "scheme: must be redis, rediss or unix",
		"redis://":                   "host: must be host or host:port",
		"redis://:secret@:6379":      "host: must be host or host:port",
		"a:1,,b:2":                   "host: must be host or host:port",
		"redis://::1":                "host: must be host or host:port",
		"redis://a:1,redis://b:2":    "port: must be a number from 1 to 65535",
		"redis://h:":                 "port: must be a number from 1 to 65535",
		"redis://h:0":                "port: must be a number from 1 to 65535",
		"redis://u:secret@h:70000":   "port: must be a number from 1 to 65535",
		"redis://h:1,i:x":            "port: must be a number from 1 to 65535",
		"redis://h/x":                "database: must be a number from 0 on",
		"redis://h/-1":               "database: must be a number from 0 on",
		"redis://h:1,i:1/2":          "database: a Cluster has only number 0",
		"redis://h?db=1":             "query: must be empty",
		"unix:///s?db=x":             "database: must be a number from 0 on",
		"unix:///s?bd=1":             "query: only db is known",
		"unix://run/redis.sock":      "path: must be absolute",
		"unix://":                    "path: must be absolute",
		"redis://:secret%@h":         "must be a URL: write special characters",
		"redis://h/0#secret":         `must have no part after "#"`,
		"redis://:secret#more@h:1":   "", // the rest of the password is taken for a fragment
		"redis://:secret/more@h:1":   "", // or for a database
		"redis://user:secret?x@h:10": "",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
