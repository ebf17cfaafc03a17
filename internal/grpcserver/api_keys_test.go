package grpcserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// keyed is a node that asks for API keys, and an administrator's context.
type keyed struct {
	client
	v1.ApiKeyServiceClient
	*node.Node
	everybody, admin context.Context
	secret           string
	hash             apikey.Hash
}

func startKeyed(t *testing.T) *keyed {
	t.Helper()
	secret, hash := apikey.NewSecret()
	k := &keyed{everybody: testkit.Context(t), secret: secret, hash: hash}
	k.admin = with(k.everybody, secret)
	return k.another(t, testkit.Database(t))
}

// another is another node of the database.
func (k keyed) another(t *testing.T, url string) *keyed {
	t.Helper()
	k.Node = node.Start(t, url, node.Options{AdminKey: &k.hash})
	k.client, k.ApiKeyServiceClient = clientOf(k.Conn, url), v1.NewApiKeyServiceClient(k.Conn)
	return &k
}

func with(ctx context.Context, secret string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
}

// create makes a key and returns its secret.
func (k *keyed) create(t *testing.T, key *v1.ApiKey) string {
	t.Helper()
	r, err := k.CreateApiKey(k.admin, &v1.CreateApiKeyRequest{ApiKey: key, RequestId: "create"})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetSecret()
}

// reaches tells with what code a secret lists Avatars.
func (k *keyed) reaches(secret string) codes.Code {
	_, err := k.ListAvatars(with(k.everybody, secret), &v1.ListAvatarsRequest{})
	return status.Code(err)
}

func TestAnAPIKeyFromItsCreationToItsEnd(t *testing.T) {
	k := startKeyed(t)
	other := k.another(t, k.url)
	request := &v1.CreateApiKeyRequest{ApiKey: &v1.ApiKey{KeyId: "chat-1", Title: "chat", Role: v1.Role_ROLE_CHAT_SERVER}, RequestId: "r1"}
	first, err := k.CreateApiKey(k.admin, request)
	if err != nil || !strings.HasPrefix(first.GetSecret(), apikey.Prefix) || len(first.GetApiKey().GetSecrets()) != 1 {
		t.Fatal(first, err)
	}
	for _, n := range []*keyed{k, other} { // also where it is not known yet
		if got := n.reaches(first.GetSecret()); got != codes.OK {
			t.Errorf("a new key: %v", got)
		}
	}
	again, err := k.CreateApiKey(k.admin, request)
	if err != nil || again.GetSecret() != "" || !proto.Equal(again.GetApiKey(), first.GetApiKey()) {
		t.Errorf("repeated: %v %v", again, err)
	}
	request.ApiKey.Title = "another"
	_, err = k.CreateApiKey(k.admin, request)
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_REQUEST_ID_REUSED")
	request.RequestId = "r2"
	_, err = k.CreateApiKey(k.admin, request)
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_ALREADY_EXISTS")

	rotate := &v1.RotateApiKeyRequest{KeyId: "chat-1", RequestId: "r3", Overlap: durationpb.New(time.Hour)}
	second, err := k.RotateApiKey(k.admin, rotate)
	if err != nil || second.GetSecret() == first.GetSecret() || len(second.GetApiKey().GetSecrets()) != 2 || second.GetApiKey().GetSecrets()[0].GetExpireTime() == nil {
		t.Fatal(second, err)
	}
	repeated, err := k.RotateApiKey(k.admin, rotate)
	if err != nil || repeated.GetSecret() != "" || len(repeated.GetApiKey().GetSecrets()) != 2 {
		t.Errorf("repeated: %v %v", repeated, err)
	}
	if k.reaches(first.GetSecret()) != codes.OK || k.reaches(second.GetSecret()) != codes.OK {
		t.Error("during the overlap both secrets are good")
	}
	third, err := k.RotateApiKey(k.admin, &v1.RotateApiKeyRequest{KeyId: "chat-1", RequestId: "r4"})
	if err != nil || len(third.GetApiKey().GetSecrets()) != 1 {
		t.Fatal(third, err)
	}
	if k.reaches(first.GetSecret()) != codes.Unauthenticated || k.reaches(second.GetSecret()) != codes.Unauthenticated || k.reaches(third.GetSecret()) != codes.OK {
		t.Error("without an overlap only the new secret is good")
	}

	stream, err := other.WatchTools(with(k.everybody, k.frontend(t, "ann")), &v1.WatchToolsRequest{ChatId: "new", UserId: "ann", Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chat-1", "ann"} {
		revoked, err := k.RevokeApiKey(k.admin, &v1.RevokeApiKeyRequest{KeyId: name})
		if err != nil || revoked.GetApiKey().GetRevokeTime() == nil || len(revoked.GetApiKey().GetSecrets()) != 0 {
			t.Fatal(revoked, err)
		}
		twice, err := k.RevokeApiKey(k.admin, &v1.RevokeApiKeyRequest{KeyId: name})
		if err != nil || !proto.Equal(twice.GetApiKey(), revoked.GetApiKey()) {
			t.Errorf("revoked again: %v %v", twice, err)
		}
	}
	if k.reaches(third.GetSecret()) != codes.Unauthenticated {
		t.Error("where it was revoked it is good for nothing at once")
	}
	for { // and the others end what is open, too
		if _, err = stream.Recv(); err != nil {
			break
		}
	}
	expect(t, err, codes.Unauthenticated, "ERROR_REASON_UNAUTHENTICATED")
	if other.reaches(third.GetSecret()) != codes.Unauthenticated {
		t.Error("it is still good elsewhere")
	}
	_, err = k.RotateApiKey(k.admin, &v1.RotateApiKeyRequest{KeyId: "chat-1", RequestId: "r5"})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_API_KEY_ENDED")
	_, err = k.RevokeApiKey(k.admin, &v1.RevokeApiKeyRequest{KeyId: "none"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")

	entries, err := k.ListAuditEntries(k.admin, &v1.ListAuditEntriesRequest{Kind: "api_key", ObjectId: "chat-1"})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range entries.GetEntries() {
		told = append(told, e.GetAction().String()[len("AUDIT_ACTION_"):]+" by "+e.GetActor())
	}
	if got, want := strings.Join(told, ", "), "REVOKE by key-file:admin, ROTATE by key-file:admin, ROTATE by key-file:admin, CREATE by key-file:admin"; got != want {
		t.Errorf("the audit log tells %s, want %s", got, want)
	}
	k.isNowhere(t, first.GetSecret(), second.GetSecret(), third.GetSecret())
}

// frontend makes a user with a key of the same name, and returns its secret.
func (k *keyed) frontend(t *testing.T, user string) string {
	t.Helper()
	if _, err := k.CreateUser(k.admin, &v1.CreateUserRequest{User: &v1.User{UserId: user}}); err != nil {
		t.Fatal(err)
	}
	return k.create(t, &v1.ApiKey{KeyId: user, Role: v1.Role_ROLE_FRONTEND, UserId: user})
}

// isNowhere looks for secrets in every table.
func (k *keyed) isNowhere(t *testing.T, secrets ...string) {
	t.Helper()
	conn, err := pgx.Connect(k.everybody, k.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(k.everybody)
	rows, _ := conn.Query(k.everybody, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 20 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		rows, _ := conn.Query(k.everybody, `SELECT t::text FROM `+pgx.Identifier{table}.Sanitize()+` t`)
		content, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(table, err)
		}
		for _, secret := range secrets {
			if strings.Contains(strings.Join(content, "\n"), secret[len(apikey.Prefix):]) {
				t.Errorf("%s has a secret", table)
			}
		}
	}
}

func TestAPIKeysThatCannotBe(t *testing.T) {
	k := startKeyed(t)
	refused := func(key *v1.ApiKey, code codes.Code, reason string, fields ...string) {
		t.Helper()
		_, err := k.CreateApiKey(k.admin, &v1.CreateApiKeyRequest{ApiKey: key, RequestId: "r"})
		expect(t, err, code, reason, fields...)
	}
	const invalid = "ERROR_REASON_INVALID_REQUEST"
	refused(&v1.ApiKey{KeyId: "a b", Role: v1.Role_ROLE_ADMIN}, codes.InvalidArgument, invalid, "api_key.key_id")
	refused(&v1.ApiKey{KeyId: "a"}, codes.InvalidArgument, invalid, "api_key.role")
	refused(&v1.ApiKey{KeyId: "a", Role: v1.Role_ROLE_FRONTEND}, codes.InvalidArgument, invalid, "api_key.user_id")
	refused(&v1.ApiKey{KeyId: "a", Role: v1.Role_ROLE_VIEWER, UserId: "ann"}, codes.InvalidArgument, invalid, "api_key.user_id")
	refused(&v1.ApiKey{KeyId: "a", Role: v1.Role_ROLE_FRONTEND, UserId: "nobody"}, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	refused(&v1.ApiKey{KeyId: "a", Role: v1.Role_ROLE_VIEWER, ExpireTime: timestamppb.New(time.Now().Add(-time.Second))}, codes.InvalidArgument, invalid, "api_key.expire_time")
	if _, err := k.GetApiKey(k.admin, &v1.GetApiKeyRequest{KeyId: "a"}); reasonOf(err) != fault.ReasonNotFound {
		t.Errorf("a refused request wrote: %v", err)
	}
	operator := k.create(t, &v1.ApiKey{KeyId: "operator", Role: v1.Role_ROLE_OPERATOR})
	_, err := k.CreateApiKey(with(k.everybody, operator), &v1.CreateApiKeyRequest{ApiKey: &v1.ApiKey{KeyId: "a", Role: v1.Role_ROLE_VIEWER}, RequestId: "r"})
	expect(t, err, codes.PermissionDenied, "ERROR_REASON_ROLE_NOT_ALLOWED")
}

func TestCredentialsThatAreNotTaken(t *testing.T) {
	k := startKeyed(t)
	good := k.create(t, &v1.ApiKey{KeyId: "viewer", Role: v1.Role_ROLE_VIEWER})
	for _, authorization := range [][]string{nil, {""}, {"Bearer"}, {"Bearer "}, {"Basic " + good}, {good}, {"Bearer " + good[:len(good)-1]}, {"Bearer " + good + "x"},
		{"Bearer " + good, "Bearer " + good}, {"Bearer " + strings.ToUpper(good)}, {"Bearer " + apikey.Prefix + strings.Repeat("A", 43)}, {"Bearer a.b.c"}} {
		ctx := metadata.NewOutgoingContext(k.everybody, metadata.MD{"authorization": authorization})
		_, err := k.ListAvatars(ctx, &v1.ListAvatarsRequest{})
		expect(t, err, codes.Unauthenticated, "ERROR_REASON_UNAUTHENTICATED")
		if strings.Contains(err.Error(), good) {
			t.Errorf("the answer has the secret in it: %v", err)
		}
	}
	if _, err := k.ListAvatars(metadata.AppendToOutgoingContext(k.everybody, "authorization", "bearer "+good), &v1.ListAvatarsRequest{}); err != nil {
		t.Errorf("the scheme's case does not matter: %v", err)
	}
}

func TestAKeyGoesWithItsUserAndTellsWhenItWasUsed(t *testing.T) {
	k := startKeyed(t)
	secret := k.frontend(t, "ann")
	ask := func() error {
		_, err := k.ListDevices(with(k.everybody, secret), &v1.ListDevicesRequest{UserId: "ann"})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if err := k.Store.RecordAPIKeyUses(k.everybody, k.Uses.Take()); err != nil {
		t.Fatal(err)
	}
	got, err := k.GetApiKey(k.admin, &v1.GetApiKeyRequest{KeyId: "ann"})
	if age := time.Since(got.GetApiKey().GetUseTime().AsTime()); err != nil || age < 0 || age > 5*time.Minute {
		t.Errorf("used %v ago: %v", age, err)
	}
	if _, err := k.DeleteUser(k.admin, &v1.DeleteUserRequest{UserId: "ann"}); err != nil {
		t.Fatal(err)
	}
	expect(t, ask(), codes.Unauthenticated, "ERROR_REASON_UNAUTHENTICATED")
	list, err := k.ListApiKeys(k.admin, &v1.ListApiKeysRequest{})
	if err != nil || len(list.GetApiKeys()) > 0 {
		t.Errorf("got %v %v", list, err)
	}
}

func TestAPIKeysAreListedInPages(t *testing.T) {
	k := startKeyed(t)
	for _, name := range []string{"c", "a", "b"} {
		k.create(t, &v1.ApiKey{KeyId: name, Role: v1.Role_ROLE_VIEWER})
	}
	var names []string
	for request := (&v1.ListApiKeysRequest{PageSize: 2}); ; {
		page, err := k.ListApiKeys(k.admin, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range page.GetApiKeys() {
			names = append(names, key.GetKeyId())
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("got %s", got)
	}
}
