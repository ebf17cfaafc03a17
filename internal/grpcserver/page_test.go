package grpcserver

import "testing"

func FuzzParsePageToken(f *testing.F) {
	f.Add(pageToken("chat_log/c", "7"))
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, token string) {
		after, err := parsePageToken("chat_log/c", token)
		if err != nil || token == "" {
			return
		}
		if again, err := parsePageToken("chat_log/c", pageToken("chat_log/c", after)); err != nil || again != after {
			t.Errorf("%q came back as %q: %v", after, again, err)
		}
		if _, err := parsePageToken("another", token); err == nil {
			t.Error("another list took the token")
		}
	})
}
