package apikey

import (
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T) (Key, string) {
	t.Helper()
	secret, hash := NewSecret()
	return Key{ID: "k", Role: caller.ChatServer, Create: noon, Secrets: []Secret{{Hash: hash, RequestID: "first", Create: noon}}}, secret
}

// good tells whether a secret is on a ring of a key that is made at one instant and asked at another.
func good(k Key, secret string, made, asked time.Time) bool {
	hash, ok := HashOf(secret)
	return ok && NewRing([]Key{k}, made).Find(hash, asked) != nil
}

func TestASecretEndsWithItsKeyOrAfterTheOverlap(t *testing.T) {
	k, first := newKey(t)
	if !good(k, first, noon, noon.Add(1000*time.Hour)) {
		t.Error("a key that does not expire goes on")
	}
	second, hash := NewSecret()
	if err := k.Rotate(hash, "second", time.Hour, noon); err != nil {
		t.Fatal(err)
	}
	third, hash := NewSecret()
	if err := k.Rotate(hash, "third", 10*time.Hour, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if !k.MadeBy("second") || k.MadeBy("fourth") {
		t.Error("requests are told apart")
	}
	for _, test := range []struct {
		secret string
		at     time.Duration
		want   bool
	}{
		{first, time.Hour - 1, true}, {first, time.Hour, false}, // a longer overlap does not prolong it
		{second, 10 * time.Hour, true}, {second, 10*time.Hour + time.Minute, false},
		{third, 1000 * time.Hour, true},
	} {
		if got := good(k, test.secret, noon, noon.Add(test.at)); got != test.want {
			t.Errorf("after %v: %t", test.at, got)
		}
	}
	k.Expire = noon.Add(30 * time.Minute)
	if good(k, first, noon, k.Expire) || good(k, third, noon, k.Expire) || !good(k, third, noon, k.Expire.Add(-1)) {
		t.Error("all secrets end with their key")
	}
	if f, ok := fault.As(k.Rotate(hash, "x", 0, k.Expire)); !ok || f.Reason != fault.ReasonAPIKeyEnded {
		t.Error("an expired key is not rotated")
	}
	k.Expire, k.Revoke = time.Time{}, noon
	if good(k, third, noon, noon) {
		t.Error("a revoked key is good for nothing")
	}
}

func TestSecretsHaveAForm(t *testing.T) {
	secret, hash := NewSecret()
	if got, ok := HashOf(secret); !ok || got != hash {
		t.Error(secret)
	}
	for _, bad := range []string{"", secret[1:], secret + "x", strings.ToUpper(secret[:4]) + secret[4:], strings.Repeat("x", 1<<20)} {
		if _, ok := HashOf(bad); ok {
			t.Errorf("%.60q has the form of a secret", bad)
		}
	}
	if other, _ := NewSecret(); other == secret {
		t.Error("two secrets are the same")
	}
}

func TestUsesAreTakenOnce(t *testing.T) {
	var u Uses
	u.Used("a", noon.Add(10*time.Second))
	u.Used("a", noon.Add(5*time.Second))
	u.Used("b", noon.Add(2*time.Minute))
	first := u.Take()
	if len(first) != 2 || !first["a"].Equal(noon) || !first["b"].Equal(noon.Add(2*time.Minute)) {
		t.Errorf("got %v", first)
	}
	if again := u.Take(); len(again) > 0 {
		t.Errorf("got %v again", again)
	}
	u.Used("a", noon.Add(time.Hour))
	u.Return(map[id.APIKey]time.Time{"a": noon, "b": noon})
	if got := u.Take(); len(got) != 2 || !got["a"].Equal(noon.Add(time.Hour)) {
		t.Errorf("got %v", got)
	}
}
