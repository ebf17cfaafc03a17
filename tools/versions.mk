# The versions of the tools that the Makefile installs, and of the proto that it copies.
BUF_VERSION := 1.72.0
SQLC_VERSION := v1.31.1
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2
GOLANGCI_LINT_VERSION := v2.15.0
PROTOVALIDATE_VERSION := v1.2.2
