-- Consumes for many callers at once, in the commonest case: units are taken from fixed windows and calendars of which
-- nothing is held, nothing came back since they were last charged, and nobody used the operation's id before. All
-- others are left to take.lua, which would decide these alike, and takes longer.
--
-- KEYS: of each operation its own, and the counters of its rules. ARGV: how long to remember in ms; how many rules are
-- told, and five things of each: its kind, its limit, whether it is archived, its length in ms or when its period begins,
-- and when that ends; then of each operation the fingerprint of its content, how many rules it has, and of each of those
-- which one it is, and the units. Answers of each operation 0, it is not decided; or 1, and of each rule how much is used,
-- and when some of that comes back.
--
-- An operation is written down between reading its counters and writing them: that finds out whether it is new.
--
-- Numbers become texts slowly, and a field is found slowly that is not among the first of a hash: so what is read always
-- is written first.
local OF_RULE = 5
local KEYS, ARGV, call = KEYS, ARGV, redis.call -- globals are slower
local remember = ARGV[1]

local names = {} -- of cells

local master -- this one, once it was asked

-- look reads a rule's counter, and says whether that can be decided here.
local function look(r, key, rule, units)
	local f, used, writes
	if rule.kind == 's' then
		local window = rule.window
		local slot = floor(ms * SLOTS / window)
		local cell = names[slot % CELLS] or tostring(slot % CELLS)
		names[slot % CELLS] = cell
		f = redis.pcall('HMGET', key, 'h', 'u', 'o', cell)
		if f.err then return end
		used = tonumber(f[2] or 0)
		local oldest, now = used > 0 and tonumber(f[3]) or slot, tonumber(f[4] or 0)
		if oldest < slot - SLOTS or slot < oldest then return end
		r.back = ceil((oldest + CELLS) * window / SLOTS)
		r.ends = (used == 0 or now == 0) and ceil((slot + CELLS) * window / SLOTS)
		writes = used > 0 and {'u', used + units, cell, now + units} or {'h', '0', 'u', units, 'o', oldest, cell, units}
	else
		local begin, ends = rule.from, rule.to
		if ms < tonumber(begin) or tonumber(ends) <= ms then return end
		f = redis.pcall('HMGET', key, 'h', 'u', 'p')
		if f.err then return end
		if f[3] == begin then used = tonumber(f[2]) elseif tonumber(f[3] or 0) < tonumber(begin) then used = 0 end
		if not used then return end
		r.back, r.ends = tonumber(ends), used == 0 and ends
		writes = used > 0 and {'u', used + units} or {'h', '0', 'u', units, 'p', begin}
	end
	r.used = used + units
	if f[1] and f[1] ~= '0' or r.used > rule.limit then return end
	if r.ends then writes[#writes + 1], writes[#writes + 2] = 'e', '0' end -- see quick.lua
	if rule.archived then -- see restore.lua
		master = master or masterName() or '?'
		local v = call('HMGET', key, 'v', 'm')
		if v[2] ~= master then return end
		writes[#writes + 1], writes[#writes + 2] = 'v', max(us, tonumber(v[1]) + 1)
	end
	r.writes = units > 0 and writes
	return true
end

local told, a = {}, 3
for i = 1, tonumber(ARGV[2]) do
	told[i] = {kind = ARGV[a], limit = tonumber(ARGV[a + 1]), archived = ARGV[a + 2] == '1', from = ARGV[a + 3], to = ARGV[a + 4],
		window = tonumber(ARGV[a + 3])}
	a = a + OF_RULE
end

local rules, answer, n, key = {}, {}, 0, 1
while KEYS[key] do
	local fingerprint, count, decided = ARGV[a], tonumber(ARGV[a + 1]), true
	for i = 1, count do
		rules[i] = rules[i] or {}
		decided = decided and look(rules[i], KEYS[key + i], told[tonumber(ARGV[a + 2 * i])], tonumber(ARGV[a + 2 * i + 1]))
	end
	n = n + 1
	if decided and call('SET', KEYS[key], 'T ' .. fingerprint, 'NX', 'PX', remember) then
		answer[n] = 1
		for i = 1, count do
			local r = rules[i]
			if r.writes then
				call('HSET', KEYS[key + i], unpack(r.writes))
				if r.ends then call('PEXPIREAT', KEYS[key + i], r.ends) end
			end
			answer[n + 1], answer[n + 2] = r.used, r.used > 0 and r.back or 0
			n = n + 2
		end
	else
		answer[n] = 0
	end
	key, a = key + 1 + count, a + 2 + 2 * count
end
return answer
