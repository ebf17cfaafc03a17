-- +goose Up

-- Identifiers are compared byte-wise everywhere, as the rules of Toolgrant do: hence COLLATE "C".

-- +goose StatementBegin
CREATE FUNCTION is_identifier(id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id ~ '^[A-Za-z0-9._:@/-]{1,128}$';
-- +goose StatementEnd

-- The catalogue's version: one more with every transaction that changes any table of the catalogue (types,
-- tools, servers, device types, groups, avatars, defaults). Its row is the lock that catalogue writers take
-- first, so a reader whose snapshot shows version n sees exactly the first n catalogue writes.
CREATE TABLE catalog_head (
    singleton boolean PRIMARY KEY DEFAULT true CONSTRAINT catalog_head_singleton_ck CHECK (singleton),
    version bigint NOT NULL CONSTRAINT catalog_head_version_ck CHECK (version >= 0)
);
INSERT INTO catalog_head (version) VALUES (0);

CREATE TABLE users (
    user_id text COLLATE "C" CONSTRAINT users_pk PRIMARY KEY
        CONSTRAINT users_user_id_ck CHECK (is_identifier(user_id))
);
COMMENT ON TABLE users IS 'Who may own devices, private tools and chats.';

CREATE TABLE mcp_servers (
    mcp_server_id text COLLATE "C" CONSTRAINT mcp_servers_pk PRIMARY KEY
        CONSTRAINT mcp_servers_mcp_server_id_ck CHECK (is_identifier(mcp_server_id)),
    title text NOT NULL,
    transport text NOT NULL CONSTRAINT mcp_servers_transport_ck CHECK (transport IN ('STREAMABLE_HTTP', 'STDIO')),
    endpoint text NOT NULL CONSTRAINT mcp_servers_endpoint_ck CHECK (endpoint <> ''),
    priority integer NOT NULL,
    headers_from_env jsonb NOT NULL
);
COMMENT ON TABLE mcp_servers IS 'MCP servers and how they are reached; secrets stay in the environment.';

CREATE TABLE tool_types (
    tool_type_id text COLLATE "C" CONSTRAINT tool_types_pk PRIMARY KEY
        CONSTRAINT tool_types_tool_type_id_ck CHECK (is_identifier(tool_type_id)),
    title text NOT NULL,
    source text NOT NULL CONSTRAINT tool_types_source_ck CHECK (source IN ('NATIVE', 'INTERNAL_MCP', 'EXTERNAL_MCP')),
    tool_class text NOT NULL,
    mcp_server_id text COLLATE "C" CONSTRAINT tool_types_mcp_server_id_fk REFERENCES mcp_servers,
    config_schema jsonb,
    input_schema jsonb,
    disabled boolean NOT NULL,
    CONSTRAINT tool_types_external_server_ck CHECK (source <> 'EXTERNAL_MCP' OR mcp_server_id IS NOT NULL),
    CONSTRAINT tool_types_native_server_ck CHECK (source <> 'NATIVE' OR mcp_server_id IS NULL)
);
CREATE INDEX tool_types_mcp_server_id_ix ON tool_types (mcp_server_id);
COMMENT ON TABLE tool_types IS 'Tool classes in code, tools of the built-in MCP server, whole external MCP servers.';

CREATE TABLE tools (
    tool_id text COLLATE "C" CONSTRAINT tools_pk PRIMARY KEY
        CONSTRAINT tools_tool_id_ck CHECK (is_identifier(tool_id)),
    tool_type_id text COLLATE "C" NOT NULL CONSTRAINT tools_tool_type_id_fk REFERENCES tool_types,
    name text NOT NULL CONSTRAINT tools_name_ck CHECK (name ~ '^[A-Za-z0-9_.-]{1,128}$'),
    title text NOT NULL,
    description text NOT NULL,
    prompt text NOT NULL,
    category text NOT NULL,
    config jsonb NOT NULL,
    status text NOT NULL CONSTRAINT tools_status_ck CHECK (status IN ('ACTIVE', 'RETIRED')),
    core boolean NOT NULL,
    precedence integer NOT NULL,
    risk text NOT NULL CONSTRAINT tools_risk_ck CHECK (risk IN ('LOW', 'MEDIUM', 'HIGH')),
    required_capabilities text[] NOT NULL,
    owner_user_id text COLLATE "C" CONSTRAINT tools_owner_user_id_fk REFERENCES users,
    -- A target for foreign keys of those who may name shared tools only.
    shared boolean NOT NULL GENERATED ALWAYS AS (owner_user_id IS NULL) STORED,
    keywords text[] NOT NULL,
    aliases text[] NOT NULL,
    examples text[] NOT NULL,
    localized jsonb NOT NULL,
    CONSTRAINT tools_private_not_core_ck CHECK (owner_user_id IS NULL OR NOT core),
    CONSTRAINT tools_tool_id_shared_uq UNIQUE (tool_id, shared)
);
CREATE INDEX tools_tool_type_id_ix ON tools (tool_type_id);
CREATE INDEX tools_owner_user_id_ix ON tools (owner_user_id) WHERE owner_user_id IS NOT NULL;
COMMENT ON TABLE tools IS 'Tool types with a configuration and a prompt: the unit of control.';

CREATE TABLE tool_relations (
    tool_id text COLLATE "C" NOT NULL CONSTRAINT tool_relations_tool_id_fk REFERENCES tools ON DELETE CASCADE,
    related_tool_id text COLLATE "C" NOT NULL CONSTRAINT tool_relations_related_tool_id_fk REFERENCES tools,
    CONSTRAINT tool_relations_pk PRIMARY KEY (tool_id, related_tool_id),
    CONSTRAINT tool_relations_self_ck CHECK (tool_id <> related_tool_id)
);
CREATE INDEX tool_relations_related_tool_id_ix ON tool_relations (related_tool_id);
COMMENT ON TABLE tool_relations IS 'Tools often needed together.';

-- +goose Down
DROP TABLE tool_relations, tools, tool_types, mcp_servers, users, catalog_head;
DROP FUNCTION is_identifier;
