package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// scraped are labels that Prometheus adds, and metrics that it has of its own.
var scraped = map[string]bool{"instance": true, "job": true, "up": true}

// condition is one of a selector: of a label, or of the metric's name.
type condition struct{ Label, Type, Value string }

func (c condition) fits(value string) bool {
	switch c.Type {
	case "=~", "!~":
		return regexp.MustCompile("^(?:"+c.Value+")$").MatchString(value) == (c.Type == "=~")
	}
	return (value == c.Value) == (c.Type == "=")
}

// parsed is what Prometheus's own parser made of a query.
type parsed struct {
	Error     string
	Selectors [][]condition
}

// parse has queries parsed, as Grafana would send them.
func parse(t *testing.T, queries []string) []parsed {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "promcheck")
	if out, err := exec.Command("go", "build", "-C", "../../tools/promcheck", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sent []string
	for _, query := range queries {
		sent = append(sent, strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(query))
	}
	input, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(tool)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []parsed
	if err := json.Unmarshal(out, &all); err != nil || len(all) != len(queries) {
		t.Fatalf("%d of %d: %v", len(all), len(queries), err)
	}
	return all
}

// faults tells what is wrong with a query: it is none, or names metrics, labels or values of labels that there are not.
func (p parsed) faults(there metrics) (faults []string) {
	if p.Error != "" {
		return []string{p.Error}
	}
	for _, selector := range p.Selectors {
		name := ""
		for _, c := range selector {
			if c.Label == "__name__" {
				name = c.Value
			}
		}
		family := there[name]
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, part); ok && there[base].GetType() == dto.MetricType_HISTOGRAM {
				family = there[base]
			}
		}
		if family == nil {
			if !scraped[name] {
				faults = append(faults, "no metric "+name)
			}
			continue
		}
		for _, c := range selector {
			if c.Label != "__name__" && c.Label != "le" && !scraped[c.Label] && !slices.ContainsFunc(valuesOf(family, c.Label), c.fits) {
				faults = append(faults, fmt.Sprintf("%s has no label with %s%s%q", name, c.Label, c.Type, c.Value))
			}
		}
	}
	return faults
}

// valuesOf are what a label of a metric is, or may be.
func valuesOf(family *dto.MetricFamily, label string) (values []string) {
	for _, metric := range family.GetMetric() {
		for _, l := range metric.GetLabel() {
			if l.GetName() == label {
				values = append(values, l.GetValue())
			}
		}
	}
	if label == "code" && len(values) > 0 { // of a status, which nobody has got yet
		for code := range codes.Code(17) {
			values = append(values, code.String())
		}
	}
	return values
}

// dashboardQueries are the queries of the dashboard, by the names of their panels.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("../../deploy/grafana/toolgrant.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries["panel "+p.Title] = append(queries["panel "+p.Title], target.Expr)
		}
	}
	return queries
}

func alertQueries(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			queries["alert "+r.Alert] = append(queries["alert "+r.Alert], r.Expr)
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("alert %s lacks a severity, a summary or a description", r.Alert)
			}
		}
	}
	return queries
}

// What dashboard, alerts and documentation ask for is what a server that is used really has.
func TestDashboardAndAlertsAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.RedisServer(t).URL)
	server.start()
	server.awaitReady()
	c := server.connect()
	w := newWorkload(ctx, t, c)
	stop := w.start(ctx, nothing, c)
	tr := allKinds(ctx, t, c)
	await(t, "traffic of all kinds", func() bool { return tr.answered.Load() > 200 })
	there := scrape(t, server.web)
	tr.stop()
	stop()

	queries := map[string][]string{}
	for _, found := range []map[string][]string{dashboardQueries(t), alertQueries(t)} {
		if len(found) < 10 {
			t.Fatalf("only %d panels or alerts", len(found))
		}
		for where, all := range found {
			queries[where] = append(queries[where], all...)
		}
	}
	documentation, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllSubmatch(documentation, -1) {
		for query := range strings.SplitSeq(string(block[1]), "\n\n") {
			queries["docs/operations.md"] = append(queries["docs/operations.md"], query)
		}
	}
	var all, places []string
	for where, some := range queries {
		for _, query := range some {
			all, places = append(all, query), append(places, where)
		}
	}
	// The check itself finds what is wrong.
	wrong := []string{"sum(", "toolgrant_nothing", `toolgrant_watchers{color="red"}`, `rate(toolgrant_rpc_calls_total{code="Fine"}[5m])`}
	for i, p := range parse(t, slices.Concat(all, wrong)) {
		faults := p.faults(there)
		if i >= len(all) {
			if len(faults) == 0 {
				t.Errorf("nothing is found to be wrong with %s", wrong[i-len(all)])
			}
			continue
		}
		for _, fault := range faults {
			t.Errorf("%s: %s\nin %s", places[i], fault, all[i])
		}
	}
}

// A call that fails through the server is in the log as JSON, under the name that its caller gave it or was told. And
// whatever fails, no password is in the log.
func TestTheLogNamesRequestsAndNoSecrets(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	const secret = "hunter2"
	relay, url := newRelay(t, testkit.Database(t))
	url = strings.Replace(url, "postgres://toolgrant:", "postgres://toolgrant:"+secret, 1)
	if !strings.Contains(url, secret) {
		t.Fatalf("no place for a password in %s", url)
	}
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_REDIS_URL=redis://:"+secret+"@"+freeAddress(t)+"/0", "TOOLGRANT_LOG_LEVEL=debug")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	_, _ = c.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: "o", UserId: "u", ToolId: "t0"}) // Redis is away
	relay.silent.Store(true)
	relay.cut()
	named := metadata.AppendToOutgoingContext(ctx, "x-request-id", "ticket-4711")
	var header metadata.MD
	limited, cancel := context.WithTimeout(named, 20*time.Second)
	defer cancel()
	if _, err := c.ExportManifest(limited, &v1.ExportManifestRequest{}, grpc.Header(&header)); err == nil {
		t.Fatal("no failure without a database")
	}
	if got := header.Get("x-request-id"); !slices.Equal(got, []string{"ticket-4711"}) {
		t.Errorf("the answer's header says %v", got)
	}
	response, err := http.Post("http://"+server.web+"/toolgrant.v1.AdminService/ExportManifest", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	made := response.Header.Get("X-Request-Id")
	if made == "" {
		t.Errorf("over HTTP, the answer's header says %v", response.Header)
	}
	relay.speak()
	server.stop()
	found := map[string]bool{}
	for line := range strings.Lines(server.log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("not JSON: %s", line)
			continue
		}
		for _, must := range []string{"time", "level", "msg"} {
			if entry[must] == nil {
				t.Errorf("no %s in %s", must, line)
			}
		}
		if name, ok := entry["request_id"].(string); ok {
			found[name] = true
		}
	}
	if !found["ticket-4711"] || made == "" || !found[made] {
		t.Errorf("ticket-4711 and %q are not both among the requests in the log: %v", made, found)
	}
	if strings.Contains(server.log.String(), secret) {
		t.Error("a password is in the log")
	}
}
