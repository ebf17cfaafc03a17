-- masterName is who this Redis is: a replica that takes over is another one. Or it is nil, and the error.
local function masterName()
	local info = redis.pcall('INFO', 'replication')
	if type(info) == 'string' then return string.sub(string.match(info, 'master_replid:(%w+)') or '-', 1, 16) end
	-- A Redis within the server's own process has no replicas, and nothing to tell of them.
	if string.find(info.err, 'not supported', 1, true) then return '-' end
	return nil, info
end

