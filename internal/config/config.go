// Package config holds the server's settings: one struct, read from defaults, one YAML file, the environment
// and flags, each stronger than the one before.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/redisurl"
)

// Config is every setting of the server. A field's tags are all there is to it: its name in the file, from
// which those of its flag and its environment variable follow, its default, and what --help says.
type Config struct {
	GRPCAddr        string        `name:"grpc_addr" default:"127.0.0.1:7700" usage:"where gRPC is served"`
	HTTPAddr        string        `name:"http_addr" default:"127.0.0.1:7701" usage:"where the API is served over HTTP, and /healthz, /readyz, /metrics and /debug/pprof/"`
	DatabaseURL     Secret        `name:"database_url" usage:"a PostgreSQL database; empty: a private one in --data-dir"`
	StandbyURL      Secret        `name:"standby_url" usage:"a streaming standby of it, where users and chats are read as far as it has replayed"`
	RedisURL        Secret        `name:"redis_url" usage:"a Redis that servers of one database share, for the counters of quotas and to wake one another: redis://host/0, redis-cluster://host,host or redis-sentinel://host,host/master; empty: a private one in memory"`
	DataDir         string        `name:"data_dir" usage:"where the private PostgreSQL keeps its data"`
	CallTimeout     time.Duration `name:"call_timeout" default:"1m" usage:"how long a call may take, whatever its caller's patience"`
	ShutdownTimeout time.Duration `name:"shutdown_timeout" default:"10s" usage:"how long calls in flight may take at shutdown"`

	LogFormat string `name:"log_format" default:"auto" usage:"how the log is written: text, json, or auto: text on a terminal, json elsewhere"`
	LogLevel  Level  `name:"log_level" default:"info" usage:"what is logged: debug, info, warn or error, and what is worse"`

	APIKeys                 bool          `name:"api_keys" default:"false" usage:"callers may prove who they are by API keys"`
	AdminKeyFile            string        `name:"admin_key_file" usage:"a file with an API key of the role admin besides, for the first administrator; it is made if it is missing"`
	JWTIssuers              Issuers       `name:"jwt_issuers" usage:"issuers of tokens by which callers may prove who they are; YAML"`
	MTLSSubjects            Subjects      `name:"mtls_subjects" usage:"whom certificates of clients prove; YAML"`
	TLSCertFile             string        `name:"tls_cert_file" usage:"a PEM file with the server's certificate, and those between it and its authority"`
	TLSKeyFile              string        `name:"tls_key_file" usage:"a PEM file with the key of tls_cert_file"`
	TLSClientCAFile         string        `name:"tls_client_ca_file" usage:"a PEM file with the authorities of clients' certificates, for mtls_subjects"`
	AllowPlaintext          bool          `name:"allow_plaintext" default:"false" usage:"serve others than this machine without TLS: something in front must encrypt"`
	CORSOrigins             Origins       `name:"cors_origins" usage:"web pages of which origins may call, such as https://app.example.com; separated by commas"`
	DrainDelay              time.Duration `name:"drain_delay" default:"0s" usage:"how long a server that is to end goes on, saying that it is not ready, until balancers have noticed"`
	RequireDeadlines        bool          `name:"require_deadlines" default:"false" usage:"refuse unary calls by gRPC that have no deadline"`
	MaxCalls                int           `name:"max_calls" default:"10000" usage:"how many unary calls may be under way; 0: any number"`
	MaxCallsPerCaller       int           `name:"max_calls_per_caller" default:"5000" usage:"how many of one caller; 0: any number"`
	MaxStreams              int           `name:"max_streams" default:"50000" usage:"how many streams may be open; 0: any number"`
	MaxStreamsPerCaller     int           `name:"max_streams_per_caller" default:"25000" usage:"how many of one caller; 0: any number"`
	MaxStreamsPerConnection int           `name:"max_streams_per_connection" default:"10000" usage:"how many calls and streams one connection by gRPC may have under way"`
	MaxConnections          int           `name:"max_connections" default:"32768" usage:"how many connections each address takes, and of one client's address half of it; 0: any number"`
	MaxConnectionAge        time.Duration `name:"max_connection_age" default:"1h" usage:"when clients by gRPC are asked to connect anew, so that new servers get their share; 0: never"`
	MaxMessageBytes         Bytes         `name:"max_message_bytes" default:"64MiB" usage:"how large a request may be"`

	MaxStaleness       time.Duration `name:"max_staleness" default:"1s" usage:"how old an answer from memory may be"`
	ServeStale         bool          `name:"serve_stale" default:"false" usage:"answer from memory, and say so, while the database cannot be reached"`
	CacheBytes         Bytes         `name:"cache_bytes" default:"256MiB" usage:"memory for users, chats and answers: half for answers"`
	ChangesRetention   time.Duration `name:"changes_retention" default:"2h" usage:"how long a server may be away without having to read everything anew"`
	CheckpointInterval time.Duration `name:"checkpoint_interval" default:"15s" usage:"how often a watcher is told that nothing changed"`
	QuotaTimeout       time.Duration `name:"quota_timeout" default:"75ms" usage:"how long each question to the counters of quotas may take, before a rule's on_outage decides"`

	HealthFailThreshold int           `name:"health_fail_threshold" default:"5" usage:"so many transport failures in a row put a tool or an MCP server aside, unless the tool says otherwise"`
	HealthCooldown      time.Duration `name:"health_cooldown" default:"30s" usage:"for how long at first, unless the tool says otherwise"`
	HealthProbeLease    time.Duration `name:"health_probe_lease" default:"1m" usage:"how long the report of a probe is waited for, before another call may probe"`

	ApprovalTTL           time.Duration `name:"approval_ttl" default:"15m" usage:"how long a call waits for a person to approve it"`
	AllowNetwork          bool          `name:"allow_network" default:"true" usage:"tools that require \"network\" may be called"`
	AllowFilesystemRead   bool          `name:"allow_filesystem_read" default:"false" usage:"tools that require \"filesystem.read\" may be called"`
	AllowFilesystemWrite  bool          `name:"allow_filesystem_write" default:"false" usage:"tools that require \"filesystem.write\" may be called"`
	SourceSynonyms        List          `name:"source_synonyms" default:"builtin,local,internal" usage:"what models call a tool's source when they mean none in particular, besides native; separated by commas"`
	McpRefreshInterval    time.Duration `name:"mcp_refresh_interval" default:"5m" usage:"how often external MCP servers are asked whether their functions changed; 0: never"`
	McpAllowStdio         bool          `name:"mcp_allow_stdio" default:"false" usage:"start MCP servers that are child processes: whoever may write the catalogue may then run any command as this server's user"`
	McpNativeServer       string        `name:"mcp_native_server" usage:"the id of the MCP server that runs native and built-in tools for MCP clients; empty: they are not served over MCP"`
	ChatRetention         time.Duration `name:"chat_retention" default:"0s" usage:"how long chats that ended are kept, with their logs; 0: for good"`
	QuotaHistoryRetention time.Duration `name:"quota_history_retention" default:"0s" usage:"how long it is kept what was used of quotas by day; 0: for good"`
	McpMaxSessions        int           `name:"mcp_max_sessions" default:"4096" usage:"how many sessions and streams of changes MCP clients may have open"`
	McpMaxUserSessions    int           `name:"mcp_max_user_sessions" default:"64" usage:"how many of them those of one user may have open"`
	McpSessionTimeout     time.Duration `name:"mcp_session_timeout" default:"1h" usage:"how long a session is kept whose MCP client sends nothing"`
	McpElicitApprovals    bool          `name:"mcp_elicit_approvals" default:"true" usage:"ask users for approvals through those MCP clients that can ask them; otherwise only those who use ApprovalService decide"`
	CallOutcomesRetention time.Duration `name:"call_outcomes_retention" default:"2160h" usage:"how long it is kept how calls went"`

	JITThreshold        int           `name:"jit_threshold" default:"15" usage:"so many tools are told to a model without a choice: searches return them all, queries narrow nothing"`
	TopKSystem          int           `name:"top_k_system" default:"3" usage:"how many shared tools a query of ResolveTools keeps of a larger set"`
	TopKUser            int           `name:"top_k_user" default:"5" usage:"how many of the user's private tools it keeps"`
	ScoreThreshold      float64       `name:"score_threshold" default:"0.3" usage:"the confidence, from 0 to 1, below which a tool is said not to fit"`
	DiscoveryWeights    Numbers       `name:"discovery_weights" usage:"weights of the ranking of tools that are not to be the defaults, such as learned.back_off=6,tool.risk_high=0.1"`
	FastPathThreshold   float64       `name:"fast_path_threshold" default:"0.8" usage:"the confidence from which a tool may be called at once for a task that it declares"`
	EmbeddingURL        string        `name:"embedding_url" usage:"an endpoint that makes vectors of texts, as OpenAI's /v1/embeddings does; names and descriptions of shared tools and what users search for are sent there; empty: words only are compared"`
	EmbeddingModel      string        `name:"embedding_model" usage:"the model's name there"`
	EmbeddingDimensions int           `name:"embedding_dimensions" default:"0" usage:"how long its vectors shall be; 0: as the model makes them"`
	EmbeddingKey        string        `name:"embedding_key" usage:"where the endpoint's key is: env:NAME or file:/path; empty: it needs none"`
	EmbeddingTimeout    time.Duration `name:"embedding_timeout" default:"150ms" usage:"how long a search waits for the vector of its query"`
	RerankerURL         string        `name:"reranker_url" usage:"an endpoint that says how well texts answer a request, as Cohere's and Jina's /rerank does; names and descriptions of the best shared tools and what users search for are sent there; empty: none"`
	RerankerModel       string        `name:"reranker_model" usage:"the model's name there"`
	RerankerKey         string        `name:"reranker_key" usage:"where the endpoint's key is: env:NAME or file:/path; empty: it needs none"`
	RerankerTimeout     time.Duration `name:"reranker_timeout" default:"300ms" usage:"how long a search waits for it"`
	RerankerThreshold   float64       `name:"reranker_threshold" default:"0.3" usage:"the relevance, from 0 to 1, below which its best match changes nothing"`
	RerankerCandidates  int           `name:"reranker_candidates" default:"20" usage:"how many matches it is asked about"`

	EmbeddingPrivateTools bool          `name:"embedding_private_tools" default:"false" usage:"send names and descriptions of users' private tools to embedding_url, too; else they are found by their words"`
	EmbeddingRetention    time.Duration `name:"embedding_retention" default:"720h" usage:"how long vectors are kept that no tool needs any more"`

	KeepQueries bool `name:"keep_queries" default:"false" usage:"keep the words of searches, besides hashes of them"`

	sources map[string]string // by name: where the value comes from, unless it is the default
}

// Validate names every value that breaks a rule, and where it comes from.
func (c *Config) Validate() error {
	return errors.Join(
		c.rule("grpc_addr", c.served(c.GRPCAddr)),
		c.rule("http_addr", c.served(c.HTTPAddr)),
		c.rule("admin_key_file", c.needs(c.AdminKeyFile != "", c.APIKeys, "api_keys")),
		c.rule("tls_cert_file", c.needs(c.TLSCertFile != "", c.TLSKeyFile != "", "tls_key_file")),
		c.rule("tls_key_file", c.needs(c.TLSKeyFile != "", c.TLSCertFile != "", "tls_cert_file")),
		c.rule("tls_client_ca_file", c.needs(c.TLSClientCAFile != "", c.TLSCertFile != "", "tls_cert_file")),
		c.rule("mtls_subjects", c.needs(len(c.MTLSSubjects) > 0, c.TLSClientCAFile != "", "tls_client_ca_file")),
		c.rule("cors_origins", c.needs(len(c.CORSOrigins) > 0, c.Authenticates(), "authentication (api_keys, jwt_issuers or mtls_subjects)")),
		c.rule("redis_url", redis(c.RedisURL)),
		c.rule("data_dir", notEmpty(c.DataDir)),
		c.rule("call_timeout", positive(c.CallTimeout)),
		c.rule("shutdown_timeout", notNegative(c.ShutdownTimeout)),
		c.rule("log_format", oneOf(c.LogFormat, "auto", "text", "json")),
		c.rule("drain_delay", between(0, 10*time.Minute, c.DrainDelay)),
		c.rule("max_calls", number(0, math.MaxInt32, c.MaxCalls)),
		c.rule("max_calls_per_caller", number(0, math.MaxInt32, c.MaxCallsPerCaller)),
		c.rule("max_streams", number(0, math.MaxInt32, c.MaxStreams)),
		c.rule("max_streams_per_caller", number(0, math.MaxInt32, c.MaxStreamsPerCaller)),
		c.rule("max_streams_per_connection", number(1, math.MaxInt32, c.MaxStreamsPerConnection)),
		c.rule("max_connections", number(0, math.MaxInt32, c.MaxConnections)),
		c.rule("max_connection_age", zeroOr(time.Second, c.MaxConnectionAge)),
		c.rule("max_message_bytes", between[Bytes](4<<10, 64<<20, c.MaxMessageBytes)),
		c.rule("max_staleness", atLeast(20*time.Millisecond, c.MaxStaleness)),
		c.rule("cache_bytes", atLeast(1<<20, c.CacheBytes)),
		c.rule("changes_retention", atLeast(time.Minute, c.ChangesRetention)),
		c.rule("health_fail_threshold", number(1, 1000, c.HealthFailThreshold)),
		c.rule("health_cooldown", between(100*time.Millisecond, time.Hour, c.HealthCooldown)),
		c.rule("health_probe_lease", between(time.Second, 24*time.Hour, c.HealthProbeLease)),
		c.rule("approval_ttl", atLeast(time.Second, c.ApprovalTTL)),
		c.rule("mcp_native_server", identifier(c.McpNativeServer)),
		c.rule("mcp_refresh_interval", zeroOr(time.Second, c.McpRefreshInterval)),
		c.rule("chat_retention", zeroOr(time.Minute, c.ChatRetention)),
		c.rule("quota_history_retention", zeroOr(24*time.Hour, c.QuotaHistoryRetention)),
		c.rule("mcp_max_sessions", number(1, 1_000_000, c.McpMaxSessions)),
		c.rule("mcp_max_user_sessions", number(1, 1_000_000, c.McpMaxUserSessions)),
		c.rule("mcp_session_timeout", between(time.Second, 24*time.Hour, c.McpSessionTimeout)),
		c.rule("call_outcomes_retention", atLeast(time.Hour, c.CallOutcomesRetention)),
		c.rule("jit_threshold", number(0, 10_000, c.JITThreshold)),
		c.rule("top_k_system", number(0, 100, c.TopKSystem)),
		c.rule("top_k_user", number(0, 100, c.TopKUser)),
		c.rule("score_threshold", share(c.ScoreThreshold)),
		c.rule("fast_path_threshold", share(c.FastPathThreshold)),
		c.rule("discovery_weights", weights(c.DiscoveryWeights)),
		c.rule("embedding_url", endpoint(c.EmbeddingURL)),
		c.rule("embedding_dimensions", number(0, 8192, c.EmbeddingDimensions)),
		c.rule("embedding_key", reference(c.EmbeddingKey)),
		c.rule("embedding_timeout", between(time.Millisecond, 10*time.Second, c.EmbeddingTimeout)),
		c.rule("embedding_model", atMost(256, c.EmbeddingModel)),
		c.rule("embedding_private_tools", c.needs(c.EmbeddingPrivateTools, c.EmbeddingURL != "", "embedding_url")),
		c.rule("embedding_retention", atLeast(48*time.Hour, c.EmbeddingRetention)),
		c.rule("reranker_url", endpoint(c.RerankerURL)),
		c.rule("reranker_key", reference(c.RerankerKey)),
		c.rule("reranker_timeout", between(time.Millisecond, 10*time.Second, c.RerankerTimeout)),
		c.rule("reranker_threshold", share(c.RerankerThreshold)),
		c.rule("reranker_candidates", number(1, 100, c.RerankerCandidates)),
		c.rule("checkpoint_interval", atLeast(100*time.Millisecond, c.CheckpointInterval)),
		c.rule("quota_timeout", between(time.Millisecond, 10*time.Second, c.QuotaTimeout)),
	)
}

func (c *Config) rule(name string, broken error) error {
	if broken == nil {
		return nil
	}
	source := c.sources[name]
	if source == "" {
		source = name
	}
	return fmt.Errorf("%s: %w", source, broken)
}

func oneOf(value string, values ...string) error {
	if !slices.Contains(values, value) {
		return fmt.Errorf("must be one of %s, not %q", strings.Join(values, ", "), value)
	}
	return nil
}

// atMost bounds a text, in bytes.
func atMost(most int, text string) error {
	if len(text) > most {
		return fmt.Errorf("must have at most %d bytes", most)
	}
	return nil
}

func redis(address Secret) error {
	if address == "" {
		return nil
	}
	_, err := redisurl.Parse(string(address))
	return err
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func positive(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("must be more than 0, not %s", d)
	}
	return nil
}

func atLeast[T interface {
	cmp.Ordered
	String() string
}](least, value T) error {
	if value < least {
		return fmt.Errorf("must be at least %s, not %s", least, value)
	}
	return nil
}

func between[T interface {
	cmp.Ordered
	String() string
}](least, most, d T) error {
	if d < least || d > most {
		return fmt.Errorf("must be %s to %s, not %s", least, most, d)
	}
	return nil
}

func number(least, most, n int) error {
	if n < least || n > most {
		return fmt.Errorf("must be %d to %d, not %d", least, most, n)
	}
	return nil
}

// Weights are those of the ranking: the defaults, and what is set.
func (c *Config) Weights() discovery.Weights {
	w := discovery.DefaultWeights()
	w.Confidence.Threshold = c.ScoreThreshold
	for _, one := range w.All() {
		if value, ok := c.DiscoveryWeights[one.Name]; ok {
			one.Set(value)
		}
	}
	return w
}

func weights(set Numbers) error {
	w := discovery.DefaultWeights()
	known := map[string]bool{}
	for _, one := range w.All() {
		known[one.Name] = true
		if value, ok := set[one.Name]; ok {
			one.Set(value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !known[name] {
			return fmt.Errorf("there is no weight %q", name)
		}
		if name == "confidence.threshold" {
			return errors.New("confidence.threshold: set score_threshold instead")
		}
	}
	return w.Validate()
}

func share(x float64) error {
	if !(x >= 0 && x <= 1) { // NaN is not
		return fmt.Errorf("must be 0 to 1, not %v", x)
	}
	return nil
}

func identifier(text string) error {
	if text != "" && !id.Valid(text) {
		return fmt.Errorf("must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ / -, not %q", text)
	}
	return nil
}

func zeroOr(least, d time.Duration) error {
	if d == 0 {
		return nil
	}
	return atLeast(least, d)
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("must not be negative, as %s is", d)
	}
	return nil
}

// defaultDataDir is a folder that outlives the checkout, and, for root, one that PostgreSQL's user can reach.
func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/toolgrant"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "toolgrant")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "toolgrant-data"
	}
	return filepath.Join(home, ".local", "share", "toolgrant")
}
