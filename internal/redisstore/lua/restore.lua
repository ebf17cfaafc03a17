-- Counters that are archived: Redis may lose them, and a replica that takes over may be behind. v: the counter's
-- version, which grows with every change; m: the master under which it was last confirmed.
--
-- A counter that is not there, or was confirmed under another master, is not used before the caller has read the
-- archive. Then this script has one more argument of each rule: what the archive knows, as version, expiry in ms and
-- content, or nothing. It is taken if it is newer than what is here. Who comes next finds the counter confirmed, and
-- what he brings is left alone: so it doesn't matter how many do this at once.
--
-- Times are versions, in microseconds: a counter that begins anew is newer than what an archive may still be told of
-- the one that was lost.
local IDLE = 3600000 -- how long an empty counter is known to be empty
local master -- this one, once it was asked
local versions, dirty = {}, false -- of rules that are archived; whether any was changed

local function confirm(key, version, master, known)
	local newer, expire, content = string.match(known, '^(%d+) (%d+) (.*)$')
	local ends = ms + max(IDLE, redis.call('PTTL', key))
	local fields = {}
	if newer and number(newer) > version then
		local held = redis.call('HGET', key, 'h')
		redis.call('DEL', key)
		for word in string.gmatch(content, '%S+') do fields[#fields + 1] = word end
		if held then fields[#fields + 1], fields[#fields + 2] = 'h', held end
		version, ends = number(newer), max(ends, number(expire))
	end
	fields[#fields + 1], fields[#fields + 2], fields[#fields + 3], fields[#fields + 4] = 'v', version, 'm', master
	redis.call('HSET', key, unpack(fields))
	redis.call('PEXPIREAT', key, min(ends, ms + LONGEST))
	return version
end

for i = 1, (#KEYS - 1) / 2 do
	if ARGV[FIRST + i * STRIDE - 1] == '1' then
		if not master then
			local name, failed = masterName()
			if failed then return failed end
			master = name
		end
		local f = redis.call('HMGET', KEYS[2 * i], 'v', 'm')
		versions[i] = number(f[1])
		if f[2] ~= master then
			local known = ARGV[FIRST + (#KEYS - 1) / 2 * STRIDE + i - 1]
			if not known then return {9} end
			versions[i] = confirm(KEYS[2 * i], versions[i], master, known)
		end
	end
end

