package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// exchange is a question and its answer as they are on the wire.
type exchange struct{ Question, Answer []byte }

// bareSettings is what a bare server does.
type bareSettings struct {
	Exchanges int // how many follow
	// DatabaseURL is a database that is asked SELECT 1 before each answer; empty: none.
	DatabaseURL string
	// RedisURL is a Redis in which a script counts one of so many keys up before each answer; empty: none.
	RedisURL string
	Keys     int
	// AnyQuestion is answered: one that is not known, with the answer to another one.
	AnyQuestion bool
}

// bareCommand is the bare server's process, which startBare starts. It reads its settings and the exchanges
// from its standard input, where nobody else sees them, writes its address, and serves until its input ends:
// so it cannot outlive the process that started it.
func bareCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "bare",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return serveBare(command.Context(), command.InOrStdin(), command.OutOrStdout())
		},
	}
}

func serveBare(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder := gob.NewDecoder(in)
	var settings bareSettings
	if err := decoder.Decode(&settings); err != nil {
		return fmt.Errorf("bare is started by resolve, not by hand: %w", err)
	}
	b := &bare{answers: map[string][]byte{}}
	for range settings.Exchanges {
		var e exchange
		if err := decoder.Decode(&e); err != nil {
			return err
		}
		b.answers[string(e.Question)] = e.Answer
		if settings.AnyQuestion {
			b.others = append(b.others, e.Answer)
		}
	}
	if settings.DatabaseURL != "" {
		database, err := pgxpool.New(ctx, settings.DatabaseURL)
		if err != nil {
			return err
		}
		defer database.Close()
		b.database = database
		first, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := b.trip(first); err != nil {
			return err
		}
	}
	if settings.RedisURL != "" {
		options, err := redis.ParseURL(settings.RedisURL)
		if err != nil {
			return errors.New("--redis-url: is not the address of a Redis")
		}
		client := redis.NewClient(options)
		defer client.Close()
		if b.redis, err = client.AutoPipeline(); err != nil {
			return err
		}
		for i := range settings.Keys {
			b.keys = append(b.keys, "bench-bare-"+strconv.Itoa(i))
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := b.server()
	defer context.AfterFunc(ctx, server.Stop)()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		server.Stop()
	}()
	fmt.Fprintln(out, listener.Addr())
	return server.Serve(listener)
}

// count is the least that a limit in Redis takes.
var count = redis.NewScript(`local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return n`)

// bare answers from memory, bytes for bytes: what gRPC costs when the work is free.
type bare struct {
	answers  map[string][]byte
	others   [][]byte // for questions that are not known, in turn; none: they are refused
	turn     atomic.Uint64
	database *pgxpool.Pool // asked for nothing, which takes a trip there and back; nil: none
	redis    *redis.AutoPipeliner
	keys     []string // counted in Redis, in turn; none: nothing is
}

func (b *bare) answer(ctx context.Context, question []byte) ([]byte, error) {
	answer, ok := b.answers[string(question)]
	if !ok && len(b.others) > 0 {
		answer, ok = b.others[b.turn.Add(1)%uint64(len(b.others))], true
	}
	if !ok {
		return nil, status.Error(codes.NotFound, "this question was not asked before")
	}
	switch {
	case b.database != nil:
		return answer, b.trip(ctx)
	case len(b.keys) > 0:
		return answer, count.Run(ctx, b.redis, []string{b.keys[b.turn.Load()%uint64(len(b.keys))]}, 60_000).Err()
	default:
		return answer, nil
	}
}

func (b *bare) trip(ctx context.Context) error {
	var one int
	return b.database.QueryRow(ctx, "SELECT 1").Scan(&one)
}

func (b *bare) server() *grpc.Server {
	handle := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var question []byte
		if err := decode(&question); err != nil {
			return nil, err
		}
		answer, err := b.answer(ctx, question)
		return &answer, err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}))
	for service, method := range map[string]string{
		toolgrantv1.EntitlementService_ServiceDesc.ServiceName: "ResolveTools",
		toolgrantv1.QuotaService_ServiceDesc.ServiceName:       "ConsumeQuota",
		toolgrantv1.CallService_ServiceDesc.ServiceName:        "AuthorizeCall",
	} {
		server.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: method, Handler: handle}}}, struct{}{})
	}
	return server
}

// rawCodec passes messages, given as *[]byte, as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name is that of the codec it stands in for.
func (rawCodec) Name() string { return "proto" }

// startBare starts this program again as a bare server of the exchanges.
func startBare(ctx context.Context, settings bareSettings, exchanges []exchange, log io.Writer) (address string, stop func() error, err error) {
	return startSelf(ctx, "bare", "the bare server", log, func(in io.Writer, out io.Reader) (string, error) { return introduce(in, out, settings, exchanges) })
}

// introduce tells a bare server its settings and exchanges, and returns its address.
func introduce(in io.Writer, out io.Reader, settings bareSettings, exchanges []exchange) (string, error) {
	settings.Exchanges = len(exchanges)
	buffered := bufio.NewWriter(in)
	encoder := gob.NewEncoder(buffered)
	if err := encoder.Encode(settings); err != nil {
		return "", err
	}
	for _, e := range exchanges {
		if err := encoder.Encode(e); err != nil {
			return "", err
		}
	}
	if err := buffered.Flush(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), err
}
