-- +goose Up

CREATE TABLE avatars (
    avatar_id text COLLATE "C" CONSTRAINT avatars_pk PRIMARY KEY
        CONSTRAINT avatars_avatar_id_ck CHECK (is_identifier(avatar_id)),
    title text NOT NULL
);
COMMENT ON TABLE avatars IS 'LLM personas.';

CREATE TABLE avatar_tools (
    avatar_id text COLLATE "C" NOT NULL CONSTRAINT avatar_tools_avatar_id_fk REFERENCES avatars ON DELETE CASCADE,
    tool_id text COLLATE "C" NOT NULL CONSTRAINT avatar_tools_tool_id_fk REFERENCES tools,
    CONSTRAINT avatar_tools_pk PRIMARY KEY (avatar_id, tool_id)
);
CREATE INDEX avatar_tools_tool_id_ix ON avatar_tools (tool_id);
COMMENT ON TABLE avatar_tools IS 'The tools that an avatar turns on.';

CREATE TABLE default_avatars (
    avatar_id text COLLATE "C" NOT NULL CONSTRAINT default_avatars_avatar_id_fk REFERENCES avatars,
    user_id text COLLATE "C" CONSTRAINT default_avatars_user_id_fk REFERENCES users,
    device_type_id text COLLATE "C" CONSTRAINT default_avatars_device_type_id_fk REFERENCES device_types
);
-- One row per pair, where null is a value too. (An id is never empty.)
CREATE UNIQUE INDEX default_avatars_user_id_device_type_id_uq
    ON default_avatars (coalesce(user_id, ''), coalesce(device_type_id, ''));
CREATE INDEX default_avatars_avatar_id_ix ON default_avatars (avatar_id);
CREATE INDEX default_avatars_device_type_id_ix ON default_avatars (device_type_id);
COMMENT ON TABLE default_avatars IS 'Which avatar a chat starts with; null is any.';

-- +goose Down
DROP TABLE default_avatars, avatar_tools, avatars;
