-- CatalogVersion returns the version that a snapshot of the database shows.
-- name: CatalogVersion :one
SELECT version FROM catalog_head;

-- LockCatalog makes this transaction the only writer of the catalogue until it ends.
-- name: LockCatalog :one
SELECT version FROM catalog_head FOR UPDATE;

-- name: AdvanceCatalog :exec
-- @sqlc-vet-disable all-rows
UPDATE catalog_head SET version = version + 1;

-- The List queries return all objects of a kind, or those of some ids that exist.

-- name: ListToolTypes :many
SELECT * FROM tool_types WHERE @every::bool OR tool_type_id = ANY (@ids::text[]) ORDER BY tool_type_id;

-- name: ListTools :many
SELECT tool_id, tool_type_id, name, title, description, prompt, category, config, status, core, precedence, risk,
       required_capabilities, owner_user_id, keywords, aliases, examples, localized, capability, fail_threshold, cooldown_ms, mcp, create_time,
       ARRAY(SELECT r.related_tool_id FROM tool_relations r WHERE r.tool_id = t.tool_id ORDER BY 1)::text[] AS related_tool_ids
FROM tools t WHERE @every::bool OR tool_id = ANY (@ids::text[]) ORDER BY tool_id;

-- ListToolFallbacks is apart from ListTools: most tools have none.
-- name: ListToolFallbacks :many
SELECT tool_id, fallback_tool_id FROM tool_fallbacks
WHERE @every::bool OR tool_id = ANY (@ids::text[]) ORDER BY tool_id, position;

-- name: ListMcpServers :many
SELECT * FROM mcp_servers WHERE @every::bool OR mcp_server_id = ANY (@ids::text[]) ORDER BY mcp_server_id;

-- name: ListDeviceTypes :many
SELECT d.*, ARRAY(SELECT t.tool_id FROM device_type_tools t WHERE t.device_type_id = d.device_type_id ORDER BY 1)::text[] AS tool_ids
FROM device_types d WHERE @every::bool OR device_type_id = ANY (@ids::text[]) ORDER BY device_type_id;

-- name: ListGroups :many
SELECT g.*,
       ARRAY(SELECT t.tool_id FROM group_tools t WHERE t.group_id = g.group_id AND t.effect = 'GRANT' ORDER BY 1)::text[] AS grant_tool_ids,
       ARRAY(SELECT t.tool_id FROM group_tools t WHERE t.group_id = g.group_id AND t.effect = 'REVOKE' ORDER BY 1)::text[] AS revoke_tool_ids
FROM groups g WHERE @every::bool OR group_id = ANY (@ids::text[]) ORDER BY group_id;

-- name: ListAvatars :many
SELECT a.*, ARRAY(SELECT t.tool_id FROM avatar_tools t WHERE t.avatar_id = a.avatar_id ORDER BY 1)::text[] AS tool_ids
FROM avatars a WHERE @every::bool OR avatar_id = ANY (@ids::text[]) ORDER BY avatar_id;

-- The id of a default is made of its user and device type; * is any.
-- name: ListDefaultAvatars :many
SELECT * FROM default_avatars
WHERE @every::bool OR coalesce(user_id, '*') || ',' || coalesce(device_type_id, '*') = ANY (@ids::text[]) ORDER BY coalesce(user_id, ''), coalesce(device_type_id, '');

-- name: PutMcpServer :exec
INSERT INTO mcp_servers (mcp_server_id, title, transport, endpoint, priority, headers_from_env)
VALUES (@mcp_server_id, @title, @transport, @endpoint, @priority, @headers_from_env)
ON CONFLICT (mcp_server_id) DO UPDATE SET (title, transport, endpoint, priority, headers_from_env) =
    (excluded.title, excluded.transport, excluded.endpoint, excluded.priority, excluded.headers_from_env);

-- name: PutToolType :exec
INSERT INTO tool_types (tool_type_id, title, source, tool_class, mcp_server_id, config_schema, input_schema, disabled, functions)
VALUES (@tool_type_id, @title, @source, @tool_class, sqlc.narg(mcp_server_id), @config_schema, @input_schema, @disabled, @functions)
ON CONFLICT (tool_type_id) DO UPDATE SET (title, source, tool_class, mcp_server_id, config_schema, input_schema, disabled, functions) =
    (excluded.title, excluded.source, excluded.tool_class, excluded.mcp_server_id, excluded.config_schema, excluded.input_schema,
    excluded.disabled, excluded.functions);

-- name: PutTool :exec
INSERT INTO tools (tool_id, tool_type_id, name, title, description, prompt, category, config, status, core, precedence,
    risk, required_capabilities, owner_user_id, keywords, aliases, examples, localized, capability, fail_threshold, cooldown_ms, mcp)
VALUES (@tool_id, @tool_type_id, @name, @title, @description, @prompt, @category, @config, @status, @core, @precedence,
    @risk, @required_capabilities, sqlc.narg(owner_user_id), @keywords, @aliases, @examples, @localized, @capability,
    sqlc.narg(fail_threshold), sqlc.narg(cooldown_ms), @mcp)
ON CONFLICT (tool_id) DO UPDATE SET (tool_type_id, name, title, description, prompt, category, config, status, core,
    precedence, risk, required_capabilities, owner_user_id, keywords, aliases, examples, localized, capability,
    fail_threshold, cooldown_ms, mcp) =
    (excluded.tool_type_id, excluded.name, excluded.title, excluded.description, excluded.prompt, excluded.category,
    excluded.config, excluded.status, excluded.core, excluded.precedence, excluded.risk, excluded.required_capabilities,
    excluded.owner_user_id, excluded.keywords, excluded.aliases, excluded.examples, excluded.localized, excluded.capability,
    excluded.fail_threshold, excluded.cooldown_ms, excluded.mcp);

-- name: ClearToolRelations :exec
DELETE FROM tool_relations WHERE tool_id = @tool_id;

-- name: AddToolRelations :exec
INSERT INTO tool_relations (tool_id, related_tool_id) SELECT @tool_id, unnest(@related_tool_ids::text[]);

-- name: ClearToolFallbacks :exec
DELETE FROM tool_fallbacks WHERE tool_id = @tool_id;

-- AddToolFallbacks keeps their order.
-- name: AddToolFallbacks :exec
INSERT INTO tool_fallbacks (tool_id, position, fallback_tool_id)
SELECT @tool_id, f.position, f.fallback_tool_id
FROM unnest(@fallback_tool_ids::text[]) WITH ORDINALITY AS f (fallback_tool_id, position);

-- name: PutDeviceType :exec
INSERT INTO device_types (device_type_id, title, capabilities)
VALUES (@device_type_id, @title, @capabilities)
ON CONFLICT (device_type_id) DO UPDATE SET (title, capabilities) = (excluded.title, excluded.capabilities);

-- name: ClearDeviceTypeTools :exec
DELETE FROM device_type_tools WHERE device_type_id = @device_type_id;

-- name: AddDeviceTypeTools :exec
INSERT INTO device_type_tools (device_type_id, tool_id) SELECT @device_type_id, unnest(@tool_ids::text[]);

-- name: PutGroup :exec
INSERT INTO groups (group_id, title, priority, permissions)
VALUES (@group_id, @title, @priority, @permissions)
ON CONFLICT (group_id) DO UPDATE SET (title, priority, permissions) = (excluded.title, excluded.priority, excluded.permissions);

-- name: ClearGroupTools :exec
DELETE FROM group_tools WHERE group_id = @group_id;

-- name: AddGroupTools :exec
INSERT INTO group_tools (group_id, tool_id, effect) SELECT @group_id, unnest(@tool_ids::text[]), @effect;

-- name: PutAvatar :exec
INSERT INTO avatars (avatar_id, title)
VALUES (@avatar_id, @title) ON CONFLICT (avatar_id) DO UPDATE SET title = excluded.title;

-- name: ClearAvatarTools :exec
DELETE FROM avatar_tools WHERE avatar_id = @avatar_id;

-- name: AddAvatarTools :exec
INSERT INTO avatar_tools (avatar_id, tool_id) SELECT @avatar_id, unnest(@tool_ids::text[]);

-- name: PutDefaultAvatar :exec
INSERT INTO default_avatars (avatar_id, user_id, device_type_id)
VALUES (@avatar_id, sqlc.narg(user_id), sqlc.narg(device_type_id))
ON CONFLICT (coalesce(user_id, ''), coalesce(device_type_id, '')) DO UPDATE SET avatar_id = excluded.avatar_id;

-- name: DeleteToolType :exec
DELETE FROM tool_types WHERE tool_type_id = @tool_type_id;

-- name: DeleteTool :exec
DELETE FROM tools WHERE tool_id = @tool_id;

-- name: DeleteMcpServer :exec
DELETE FROM mcp_servers WHERE mcp_server_id = @mcp_server_id;

-- name: DeleteDeviceType :exec
DELETE FROM device_types WHERE device_type_id = @device_type_id;

-- name: DeleteGroup :exec
DELETE FROM groups WHERE group_id = @group_id;

-- name: DeleteAvatar :exec
DELETE FROM avatars WHERE avatar_id = @avatar_id;

-- name: DeleteDefaultAvatar :exec
DELETE FROM default_avatars WHERE coalesce(user_id, '') = @user_id::text AND coalesce(device_type_id, '') = @device_type_id::text;

-- ShareCatalog keeps writers of the catalogue out until this transaction ends.
-- name: ShareCatalog :one
SELECT version FROM catalog_head FOR SHARE;
