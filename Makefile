# `make` alone lists the targets. A laptop and the CI run the same ones.

include tools/versions.mk

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tools live outside the tree, in a folder per version of Go, tool and its version, so that branches with
# other versions don't disturb each other. (golangci-lint must be built with a Go no older than go.mod's.)
GOVERSION := $(firstword $(shell go env GOVERSION))
ifeq ($(GOVERSION),)
$(error Go is needed: https://go.dev/doc/install)
endif
TOOLS := $(HOME)/.cache/toolgrant/tools/$(GOVERSION)
BUF := $(TOOLS)/buf-$(BUF_VERSION)/bin/buf
SQLC := $(TOOLS)/sqlc-$(SQLC_VERSION)/bin/sqlc
PROTOC_GEN_GO := $(TOOLS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION)/bin/protoc-gen-go
PROTOC_GEN_GO_GRPC := $(TOOLS)/protoc-gen-go-grpc-$(PROTOC_GEN_GO_GRPC_VERSION)/bin/protoc-gen-go-grpc
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)/bin/golangci-lint
PROTOVALIDATE := third_party/.protovalidate-$(PROTOVALIDATE_VERSION)

TEST_TIMEOUT ?= 10m

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z\/-]*:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(BUF) $(SQLC) $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) $(GOLANGCI_LINT) $(PROTOVALIDATE) postgres redis faketime mcp-servers chromium web-example ## Install what is missing: pinned tools, imported protos, PostgreSQL, Redis, libfaketime, MCP servers and Chromium for tests
	go mod download

.PHONY: generate
generate: generate/proto generate/sql ## Write the generated code: gen/ and internal/postgres/db/

.PHONY: generate/proto
generate/proto: $(BUF) $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) $(PROTOVALIDATE)
	PATH="$(dir $(PROTOC_GEN_GO)):$(dir $(PROTOC_GEN_GO_GRPC)):$$PATH" $(BUF) generate proto

.PHONY: generate/sql
generate/sql: $(SQLC)
	$(SQLC) generate

.PHONY: build
build: ## Compile everything
	go build ./...

.PHONY: run
run: postgres ## Serve on embedded defaults, apply examples/company.yaml, show what three conversations may use, keep serving
	@tools/demo keep

.PHONY: demo
demo: postgres ## The same, and exit
	@tools/demo

# `make lint` vets the code, tests included.
.PHONY: test
test: postgres redis faketime mcp-servers chromium web-example ## Run all tests, with the race detector, on private servers
	go test -race -vet=off -timeout $(TEST_TIMEOUT) ./...

.PHONY: chaos
chaos: postgres redis ## Break four servers, PostgreSQL, Redis and networks at random under load for DURATION (3m), by SEED, and check what must hold
	go test -race ./cmd/server -run '^TestChaos$$' -count=1 -v -timeout 30m -chaos.duration $(or $(DURATION),3m) -chaos.seed $(or $(SEED),0)

.PHONY: lint
lint: $(GOLANGCI_LINT) $(BUF) $(PROTOVALIDATE) ## Check Go code (vet, gofmt, import direction, more) and protos
	$(GOLANGCI_LINT) run ./...
	$(BUF) lint
	$(BUF) format --diff --exit-code proto

.PHONY: verify
verify: lint verify/generated verify/sql verify/breaking verify/migrations verify/licences verify/deploy ## All checks but the tests: lint, generated code up to date, queries, clients not broken, migrations unchanged, licences, deploy/

# Compared with the index: `git add` what was generated, and verify is content.
.PHONY: verify/generated
verify/generated: generate $(SQLC)
	$(SQLC) diff
	git diff --exit-code -- gen internal/postgres/db
	@untracked=$$(git ls-files --others --exclude-standard -- gen internal/postgres/db); \
	if [ -n "$$untracked" ]; then \
		printf 'generated, but not in git:\n%s\n' "$$untracked" >&2; exit 1; \
	fi

.PHONY: verify/sql
verify/sql: $(SQLC) postgres
	go run ./tools/withdb $(SQLC) vet

.PHONY: verify/breaking
verify/breaking: $(BUF) $(PROTOVALIDATE)
	@tools/verify-breaking $(BUF)

.PHONY: verify/migrations
verify/migrations:
	@tools/verify-migrations

.PHONY: checksums
checksums: ## Record new migrations in sql/schema/checksums.txt, so that they never change
	@tools/verify-migrations add

# What is released: the same source gives the same bytes, wherever it is built.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
RELEASE := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X github.com/toolgrant/toolgrant/internal/version.stamp=$(VERSION)'

.PHONY: dist
dist: ## Build what is released, into dist/: binaries, a bill of materials (SBOM) of each, checksums
	rm -rf dist && mkdir dist
	$(RELEASE) -o dist/ ./cmd/server ./cmd/toolctl
	go build -C tools/sbom -o $(CURDIR)/bin/sbom .
	for binary in server toolctl; do bin/sbom dist/$$binary > dist/$$binary.sbom.json; done
	cd dist && sha256sum * > SHA256SUMS

.PHONY: verify/licences
verify/licences: ## Check the licences of all that is in the server and toolctl
	go test -C tools/sbom .
	go build -C tools/sbom -o $(CURDIR)/bin/sbom .
	go build -o bin/ ./cmd/server ./cmd/toolctl
	for binary in server toolctl; do bin/sbom bin/$$binary > /dev/null; done

.PHONY: verify/deploy
verify/deploy: ## Check deploy/: objects of Kubernetes, the compose file, the Containerfile
	go build -C tools/deploycheck -o $(CURDIR)/bin/deploycheck .
	bin/deploycheck deploy

# Compiles everything twice: for releases, not for each change.
.PHONY: verify/reproducible
verify/reproducible: ## Build the release twice, at two places without anything from before, and compare the bytes
	@tools/verify-reproducible

# Asks https://vuln.go.dev, or what GOVULNDB names: not a part of verify, which needs no such thing.
.PHONY: vulncheck
vulncheck: ## Check for known vulnerabilities in what is called; needs a vulnerability database on the network
	go build -C tools/vulncheck -o $(CURDIR)/bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	@bin/govulncheck ./... || { status=$$?; \
		if [ $$status -ne 3 ]; then echo "vulncheck: NOT CHECKED: see above; is the database reachable? GOVULNDB names another one" >&2; fi; \
		exit $$status; }

.PHONY: postgres
postgres:
	@tools/install-postgres

.PHONY: redis
redis:
	@tools/install-redis

.PHONY: faketime
faketime:
	@tools/install-faketime

.PHONY: mcp-servers
mcp-servers:
	@tools/install-mcp-servers

.PHONY: chromium
chromium:
	@tools/install-chromium

.PHONY: web-example
web-example: $(BUF) $(PROTOVALIDATE) ## Build examples/web
	@tools/build-web-example $(BUF)

# go-install,package@version: the binary of the target's name, whatever GOFLAGS this machine has.
go-install = GOFLAGS= GOTOOLCHAIN=$(GOVERSION) GOBIN=$(@D) go install $1

# buf is prebuilt in npm; compiling it takes minutes. The link comes last: it tells that all is there.
$(BUF):
	mkdir -p $(@D)
	if command -v npm >/dev/null && npm install --silent --no-save --no-audit --no-fund \
			--prefix $(@D)/../npm @bufbuild/buf@$(BUF_VERSION) && \
			$(@D)/../npm/node_modules/.bin/buf --version >/dev/null; then \
		ln -sf ../npm/node_modules/.bin/buf $@; \
	else \
		$(call go-install,github.com/bufbuild/buf/cmd/buf@v$(BUF_VERSION)); \
	fi

$(SQLC):
	$(call go-install,github.com/sqlc-dev/sqlc/cmd/sqlc@$(SQLC_VERSION))

$(PROTOC_GEN_GO):
	$(call go-install,google.golang.org/protobuf/cmd/protoc-gen-go@$(PROTOC_GEN_GO_VERSION))

$(PROTOC_GEN_GO_GRPC):
	$(call go-install,google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(PROTOC_GEN_GO_GRPC_VERSION))

$(GOLANGCI_LINT):
	$(call go-install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION))

# The module cache is read-only; the copy is not.
$(PROTOVALIDATE):
	dir=$$(go mod download -json github.com/bufbuild/protovalidate@$(PROTOVALIDATE_VERSION) \
		| sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$$/\1/p'); \
	test -d "$$dir/proto/protovalidate"; \
	rm -rf third_party/protovalidate third_party/.protovalidate-*; \
	mkdir -p third_party; \
	cp -R "$$dir/proto/protovalidate" third_party/protovalidate; \
	chmod -R u+w third_party/protovalidate
	touch $@
