// Package web tests the example in a real browser.
package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"buf.build/go/protoyaml"
	"github.com/chromedp/chromedp"
	"google.golang.org/grpc/metadata"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const company = `
tool_types: [{tool_type_id: native, source: TOOL_SOURCE_NATIVE}]
tools:
  - {tool_id: clock, tool_type_id: native, name: clock, core: true}
  - {tool_id: weather, tool_type_id: native, name: weather}
  - {tool_id: slides, tool_type_id: native, name: slides, title: Slides}
device_types: [{device_type_id: phone, tool_ids: [clock, weather, slides]}]
groups: [{group_id: trial, title: Trial, priority: 1, revoke_tool_ids: [slides]}]
avatars: [{avatar_id: helper, tool_ids: [weather]}]
default_avatars: [{avatar_id: helper}]
users:
  - {user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}]}
  - {user_id: bob, devices: [{device_id: bob-phone, device_type_id: phone}]}
`

// site is a server with two pages that would call it, one of which may.
type site struct {
	t                  *testing.T
	ctx                context.Context // an administrator's
	admin              v1.AdminServiceClient
	chats              v1.ChatServiceClient
	api, page, foreign string
	key                string // ann's
}

func newSite(t *testing.T) *site {
	t.Helper()
	if _, err := os.Stat("dist/page.js"); err != nil {
		t.Fatalf("%v: run make web-example", err)
	}
	secret, hash := apikey.NewSecret()
	n := node.Start(t, testkit.Database(t), node.Options{AdminKey: &hash})
	serve := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	s := &site{t: t, ctx: metadata.AppendToOutgoingContext(testkit.Context(t), "authorization", "Bearer "+secret),
		admin: v1.NewAdminServiceClient(n.Conn), chats: v1.NewChatServiceClient(n.Conn)}
	files := http.FileServer(http.Dir("."))
	s.page, s.foreign = serve(files), serve(files)
	web, err := grpcserver.Web(n.Server, grpcserver.WebOptions{Authenticated: true, Origins: []string{s.page}})
	if err != nil {
		t.Fatal(err)
	}
	s.api = serve(web)
	s.apply(company)
	key, err := v1.NewApiKeyServiceClient(n.Conn).CreateApiKey(s.ctx, &v1.CreateApiKeyRequest{RequestId: "r",
		ApiKey: &v1.ApiKey{KeyId: "ann-browser", Role: v1.Role_ROLE_FRONTEND, UserId: "ann"}})
	if err != nil {
		t.Fatal(err)
	}
	s.key = key.GetSecret()
	return s
}

func (s *site) apply(manifest string) {
	s.t.Helper()
	m := &v1.Manifest{}
	if err := protoyaml.Unmarshal([]byte(manifest), m); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.admin.ApplyManifest(s.ctx, &v1.ApplyManifestRequest{Manifest: m}); err != nil {
		s.t.Fatal(err)
	}
}

// browser starts Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Fatal("there is no Chromium: run tools/install-chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a page and has it connect.
func (s *site) connect(ctx context.Context, page, key, user, chat, protocol string) {
	s.t.Helper()
	err := chromedp.Do(ctx, chromedp.Navigate(page+"/"), chromedp.SetValue("#server", s.api), chromedp.SetValue("#credential", key), chromedp.SetValue("#user", user),
		chromedp.SetValue("#chat", chat), chromedp.SetValue("#protocol", protocol), chromedp.Click("#form button"))
	if err != nil {
		s.t.Fatal(err)
	}
}

// await waits until an expression has a text in it.
func (s *site) await(ctx context.Context, expression string, want string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for got := ""; ; {
		var err error
		if got, err = chromedp.Run(ctx, chromedp.Evaluate[string](expression)); err != nil {
			s.t.Fatalf("got %q, want %q: %v", got, want, err)
		}
		if strings.Contains(got, want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const (
	given    = `"given: " + [...document.querySelectorAll("[data-tool]")].map(row => row.dataset.tool).join(" ") + "; withheld: " + [...document.querySelectorAll("[data-withheld]")].map(row => row.dataset.withheld).join(" ") + "."`
	statusOf = `document.getElementById("status").textContent`
)

func TestAPageResolvesTogglesAndWatches(t *testing.T) {
	for _, protocol := range []string{"connect", "grpc-web"} {
		t.Run(protocol, func(t *testing.T) {
			s := newSite(t)
			ctx := browser(t)
			s.connect(ctx, s.page, s.key, "ann", "browser", protocol)
			s.await(ctx, statusOf, "watching")
			s.await(ctx, given, "given: clock weather; withheld: .")

			// The page turns a tool off and another one on; what it shows comes by the stream.
			// (It is clicked by the page itself: the stream may put another row in the place of one that was looked up.)
			if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector("[data-tool=weather] input").click() ?? true`)); err != nil {
				t.Fatal(err)
			}
			s.await(ctx, given, "given: clock; withheld: .")
			if err := chromedp.Do(ctx, chromedp.SendKeys("#tool", "slides"), chromedp.Click("#enable button")); err != nil {
				t.Fatal(err)
			}
			s.await(ctx, given, "given: clock slides; withheld: .")
			log, err := s.chats.ListChatLog(s.ctx, &v1.ListChatLogRequest{ChatId: "browser"})
			if err != nil || len(log.GetEntries()) != 3 {
				t.Errorf("the chat's log: %v %v", log, err)
			}

			// Others change the same conversation, and what its user may use.
			if _, err := s.chats.SetChatTools(s.ctx, &v1.SetChatToolsRequest{ChatId: "browser", RequestId: "chat-server", Changes: []*v1.ToolChange{
				{ToolId: "weather", Action: v1.ChatAction_CHAT_ACTION_ENABLE}}}); err != nil {
				t.Fatal(err)
			}
			s.await(ctx, given, "given: clock slides weather; withheld: .")
			s.apply(`users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: trial}]}]`)
			s.await(ctx, given, "given: clock weather; withheld: slides.")
			s.await(ctx, `document.getElementById("withheld").textContent`, "Trial")
		})
	}
}

func TestAPageReachesNobodyElse(t *testing.T) {
	s := newSite(t)
	ctx := browser(t)
	s.connect(ctx, s.page, s.key, "bob", "browser", "connect")
	s.await(ctx, statusOf, `reaches the data of user "ann" only`)
	s.connect(ctx, s.page, s.key+"x", "ann", "browser", "connect")
	s.await(ctx, statusOf, "[unauthenticated]")
	if _, err := s.chats.CreateChat(s.ctx, &v1.CreateChatRequest{ChatId: "bobs", UserId: "bob", RequestId: "r",
		Surface: &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}}); err != nil {
		t.Fatal(err)
	}
	s.connect(ctx, s.page, s.key, "ann", "bobs", "grpc-web")
	s.await(ctx, statusOf, "belongs to another user")
	// The browser does not let a page call that the server does not name.
	s.connect(ctx, s.foreign, s.key, "ann", "browser", "connect")
	s.await(ctx, statusOf, "Failed to fetch")
	s.await(ctx, given, "given: ; withheld: .")
}
