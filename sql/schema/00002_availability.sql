-- +goose Up

CREATE TABLE device_types (
    device_type_id text COLLATE "C" CONSTRAINT device_types_pk PRIMARY KEY
        CONSTRAINT device_types_device_type_id_ck CHECK (is_identifier(device_type_id)),
    title text NOT NULL,
    capabilities text[] NOT NULL
);
COMMENT ON TABLE device_types IS 'Kinds of devices and what they can do.';

CREATE TABLE device_type_tools (
    device_type_id text COLLATE "C" NOT NULL
        CONSTRAINT device_type_tools_device_type_id_fk REFERENCES device_types ON DELETE CASCADE,
    tool_id text COLLATE "C" NOT NULL,
    tool_shared boolean NOT NULL DEFAULT true CONSTRAINT device_type_tools_shared_ck CHECK (tool_shared),
    CONSTRAINT device_type_tools_pk PRIMARY KEY (device_type_id, tool_id),
    CONSTRAINT device_type_tools_tool_id_fk FOREIGN KEY (tool_id, tool_shared) REFERENCES tools (tool_id, shared)
);
CREATE INDEX device_type_tools_tool_id_ix ON device_type_tools (tool_id);
COMMENT ON TABLE device_type_tools IS 'Tools offered on a kind of device; never private ones.';

CREATE TABLE groups (
    group_id text COLLATE "C" CONSTRAINT groups_pk PRIMARY KEY
        CONSTRAINT groups_group_id_ck CHECK (is_identifier(group_id)),
    title text NOT NULL,
    priority integer NOT NULL
);
COMMENT ON TABLE groups IS 'Groups of users; the highest priority decides.';

CREATE TABLE group_tools (
    group_id text COLLATE "C" NOT NULL CONSTRAINT group_tools_group_id_fk REFERENCES groups ON DELETE CASCADE,
    tool_id text COLLATE "C" NOT NULL,
    effect text NOT NULL CONSTRAINT group_tools_effect_ck CHECK (effect IN ('GRANT', 'REVOKE')),
    tool_shared boolean NOT NULL DEFAULT true CONSTRAINT group_tools_shared_ck CHECK (tool_shared),
    CONSTRAINT group_tools_pk PRIMARY KEY (group_id, tool_id, effect),
    CONSTRAINT group_tools_tool_id_fk FOREIGN KEY (tool_id, tool_shared) REFERENCES tools (tool_id, shared)
);
CREATE INDEX group_tools_tool_id_ix ON group_tools (tool_id);
COMMENT ON TABLE group_tools IS 'What a group grants and revokes; never private tools.';

CREATE TABLE devices (
    device_id text COLLATE "C" CONSTRAINT devices_pk PRIMARY KEY
        CONSTRAINT devices_device_id_ck CHECK (is_identifier(device_id)),
    user_id text COLLATE "C" NOT NULL CONSTRAINT devices_user_id_fk REFERENCES users ON DELETE CASCADE,
    device_type_id text COLLATE "C" NOT NULL CONSTRAINT devices_device_type_id_fk REFERENCES device_types
);
CREATE INDEX devices_user_id_ix ON devices (user_id);
CREATE INDEX devices_device_type_id_ix ON devices (device_type_id);
COMMENT ON TABLE devices IS 'Devices and who owns them.';

CREATE TABLE memberships (
    user_id text COLLATE "C" NOT NULL CONSTRAINT memberships_user_id_fk REFERENCES users ON DELETE CASCADE,
    group_id text COLLATE "C" NOT NULL CONSTRAINT memberships_group_id_fk REFERENCES groups,
    start_time timestamptz,
    expire_time timestamptz,
    CONSTRAINT memberships_pk PRIMARY KEY (user_id, group_id),
    CONSTRAINT memberships_period_ck CHECK (start_time < expire_time)
);
CREATE INDEX memberships_group_id_ix ON memberships (group_id);
COMMENT ON TABLE memberships IS 'Who is in which group, from start_time inclusive to expire_time exclusive.';

-- +goose Down
DROP TABLE memberships, devices, group_tools, groups, device_type_tools, device_types;
