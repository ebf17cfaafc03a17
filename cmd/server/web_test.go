package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// post asks a server over HTTP, with JSON, and returns the status and what was answered.
func (c *child) post(method, body string) (status int, answer map[string]any, err error) {
	response, err := http.Post("http://"+c.web+"/toolgrant.v1."+method, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	return response.StatusCode, answer, json.NewDecoder(response.Body).Decode(&answer)
}

func (c *child) mustPost(method, body string) map[string]any {
	c.t.Helper()
	status, answer, err := c.post(method, body)
	if err != nil || status != http.StatusOK {
		c.t.Fatalf("%s: %d %v %v", method, status, answer, err)
	}
	return answer
}

func TestAServerThatStopsLosesNothingOfTheHistory(t *testing.T) {
	t.Parallel()
	c := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t))
	c.start()
	c.awaitReady()
	c.mustPost("AdminService/ApplyManifest", `{"manifest": {"tool_types": [{"tool_type_id": "t", "source": "TOOL_SOURCE_NATIVE"}],
		"tools": [{"tool_id": "web", "tool_type_id": "t", "name": "web"}], "users": [{"user_id": "ann"}]}}`)
	var group sync.WaitGroup
	var admitted [4]int
	for worker := range admitted {
		group.Go(func() {
			for call := range 1_000_000 {
				status, _, err := c.post("QuotaService/ConsumeQuota", fmt.Sprintf(`{"operation_id": "%d.%d", "user_id": "ann", "tool_id": "web"}`, worker, call))
				if err != nil {
					return // it is gone
				}
				if status == http.StatusOK {
					admitted[worker]++
				}
			}
		})
	}
	await(t, "it counts", func() bool { return scrape(t, c.web).of("toolgrant_rpc_calls_total", "ConsumeQuota") > 50 })
	c.stop()
	group.Wait()

	c.start()
	c.awaitReady()
	want := admitted[0] + admitted[1] + admitted[2] + admitted[3]
	got := 0
	for _, day := range c.mustPost("QuotaService/ListQuotaHistory", `{"user_id": "ann"}`)["usage"].([]any) {
		var calls int
		if _, err := fmt.Sscan(day.(map[string]any)["calls"].(string), &calls); err != nil {
			t.Error(err)
		}
		got += calls
	}
	// An answer may have been lost when the server closed its connections.
	if got < want || got > want+len(admitted) {
		t.Errorf("%d calls are in the history, %d were admitted", got, want)
	}
}
