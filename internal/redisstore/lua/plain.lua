-- Takes for many callers at once, in the commonest case: units are consumed, or reserved, from fixed windows and calendars,
-- and nobody used the operation's id before. What is consumed must be of counters of which nothing is held. All others are left to take.lua, which would decide these alike, and takes
-- longer.
--
-- KEYS: of what is consumed the operation's own, and the counters of its rules; of a reservation its own, the one that tells
-- whose it is, and of each rule the counter and the leases. ARGV: how long to remember what was consumed, in ms, and for
-- how much longer than its lease a reservation, and whose it is; how many rules are told, and six things of each: its kind,
-- its limit, whether it is archived, whether an abandoned reservation is charged, its length in ms or when its period
-- begins, and when that ends; then of each operation its lease in ms (0: it consumes), the fingerprint of its content, how
-- many rules it has; of a reservation its user, and what to write down; and of each rule which one it is, the units, and
-- what a lease of them is called.
--
-- Answers of each operation 0, it is not decided; or 1, of a reservation when its lease ends, and of each rule how much is
-- used, of a reservation how much is held, and when some of what is used comes back.
--
-- An operation is written down between reading its counters and writing them: that finds out whether it is new.
--
-- Two fields of counters tell what need not be read and written each time. e: until when the counter and its leases are
-- known to last; 0 or nothing: as long as was needed when it was last written. f, unless e is 0: no lease ends before.
--
-- Numbers become texts slowly, so those that many need are kept as such; and a field is found slowly that is not among the first of a hash: so what is read always
-- is written first.
local OF_RULE, SLACK, LEASES_AT_ONCE = 6, 60000, 1000
local KEYS, ARGV, call, pcall, format = KEYS, ARGV, redis.call, redis.pcall, string.format -- globals are slower
local remember = ARGV[1]

local names = {} -- of cells

local master -- this one, once it was asked

-- versionOf is the next version of a counter that is archived, see restore.lua; nil: it must be restored first.
local function versionOf(version, of)
	master = master or masterName() or '?'
	return of == master and max(us, tonumber(version) + 1) or nil
end

-- drop forgets the slots of a window that came back. It answers what is left, since which slot, and which cells are to go.
local function drop(key, oldest, slot)
	local cells, left, since, gone = {}, 0, slot, {}
	for k = 0, SLOTS do cells[k + 1] = (oldest + k) % CELLS end
	local units = call('HMGET', key, unpack(cells))
	for k = SLOTS, 0, -1 do
		local n = tonumber(units[k + 1] or 0)
		if n > 0 and oldest + k < slot - SLOTS then
			gone[#gone + 1] = cells[k + 1]
		elseif n > 0 then
			left, since = left + n, oldest + k
		end
	end
	return left, since, gone[1] and gone
end

-- gather reads what is held, and what of it is abandoned, which is given back. It says whether that can be decided here.
local function gather(r, rule, leases)
	if r.first > ms + LONGEST_LEASE then return end -- the clock was ahead
	if r.lasts > 0 and r.first > ms then return true end
	local first = call('ZRANGE', leases, 0, 0, 'WITHSCORES')
	if not first[1] then return end
	r.first, r.anew = tonumber(first[2]), true
	if r.first > ms + LONGEST_LEASE then return end
	if r.first > ms then return true end
	if rule.keep then return end
	local over = call('ZRANGEBYSCORE', leases, '-inf', ms, 'LIMIT', 0, LEASES_AT_ONCE)
	for i = 1, #over do r.held = max(0, r.held - tonumber(string.match(over[i], '^%d+'))) end
	r.over, r.first = #over, ms
	return true
end

-- needed is until when a counter is needed of which something is held.
local function needed(r, rule, leases, leased)
	local last = leased
	if r.lasts == 0 and r.held > 0 then last = max(last, tonumber(call('ZRANGE', leases, -1, -1, 'WITHSCORES')[2])) end
	return max(r.needed, last + rule.length + 1000)
end

-- consumes reads a rule's counter, and says whether consuming can be decided here, and what is to be written.
local function consumes(r, rule, units, key)
	local f, used
	r.gone, r.oldest = nil, nil
	if rule.kind == 's' then
		local window = rule.window
		local slot = floor(ms * SLOTS / window)
		local cell = names[slot % CELLS] or tostring(slot % CELLS)
		names[slot % CELLS] = cell
		if rule.archived then f = pcall('HMGET', key, 'h', 'u', 'o', cell, 'v', 'm') else f = pcall('HMGET', key, 'h', 'u', 'o', cell) end
		if f.err then return end
		used = tonumber(f[2] or 0)
		local oldest, now = used > 0 and tonumber(f[3]) or slot, tonumber(f[4] or 0)
		if slot < oldest then return end
		if oldest < slot - SLOTS then
			used, oldest, r.gone = drop(key, oldest, slot)
			now = 0 -- what the cell has came back
		end
		r.back = ceil((oldest + CELLS) * window / SLOTS)
		r.ends = (used == 0 or now == 0) and ceil((slot + CELLS) * window / SLOTS)
		r.oldest, r.place, r.at = oldest, cell, format('%d', now + units)
	else
		local begin, ends = rule.from, rule.to
		if ms < tonumber(begin) or tonumber(ends) <= ms then return end
		if rule.archived then f = pcall('HMGET', key, 'h', 'u', 'p', 'e', 'v', 'm') else f = pcall('HMGET', key, 'h', 'u', 'p') end
		if f.err then return end
		if f[3] == begin then used = tonumber(f[2]) elseif tonumber(f[3] or 0) < tonumber(begin) then used = 0 end
		if not used then return end
		r.back, r.ends = tonumber(ends), used == 0 and ends
		r.place, r.at = 'p', begin
	end
	r.used = used + units
	if f[1] and f[1] ~= '0' or r.used > rule.limit then return end
	r.units, r.version = units, rule.archived and versionOf(f[5], f[6])
	if rule.archived and not r.version then return end
	return true
end

-- charge writes down what is consumed.
local function charge(r, key)
	local used = format('%d', r.used)
	if r.ends then -- nothing was consumed in this slot or period before
		local writes = {'h', '0', 'u', used, r.place, r.at, 'e', '0'}
		if r.oldest then writes = {'h', '0', 'u', used, 'o', r.oldest, r.place, r.at, 'e', '0'} end
		if r.version then writes[#writes + 1], writes[#writes + 2] = 'v', r.version end
		if r.gone then call('HDEL', key, unpack(r.gone)) end
		call('HSET', key, unpack(writes))
		call('PEXPIREAT', key, r.ends)
	elseif r.version then
		call('HSET', key, 'u', used, r.place, r.at, 'v', r.version)
	else
		call('HSET', key, 'u', used, r.place, r.at)
	end
end

-- reserves reads a rule's counter, and says whether reserving can be decided here.
local function reserves(r, rule, units, key, leases, leased)
	local f
	r.gone = nil
	if rule.kind == 's' then
		local window = rule.window
		local slot = floor(ms * SLOTS / window)
		if rule.archived then f = pcall('HMGET', key, 'h', 'u', 'o', 'e', 'f', 'v', 'm') else f = pcall('HMGET', key, 'h', 'u', 'o', 'e', 'f') end
		if f.err then return end
		r.used = tonumber(f[2] or 0)
		local oldest = r.used > 0 and tonumber(f[3]) or slot
		if slot < oldest then return end
		if oldest < slot - SLOTS then r.used, oldest, r.gone = drop(key, oldest, slot) end
		r.place, r.at = 'o', oldest
		r.back, r.needed = ceil((oldest + CELLS) * window / SLOTS), ceil((slot + CELLS) * window / SLOTS)
	else
		local begin, ends = rule.from, rule.to
		if ms < tonumber(begin) or tonumber(ends) <= ms then return end
		if rule.archived then f = pcall('HMGET', key, 'h', 'u', 'p', 'e', 'f', 'v', 'm') else f = pcall('HMGET', key, 'h', 'u', 'p', 'e', 'f') end
		if f.err then return end
		if f[3] == begin then r.used = tonumber(f[2]) elseif tonumber(f[3] or 0) < tonumber(begin) then r.used = 0 end
		if not r.used then return end
		r.place, r.at = 'p', begin
		r.back, r.needed = tonumber(ends), tonumber(ends)
	end
	r.held, r.lasts, r.first, r.over = tonumber(f[1] or 0), tonumber(f[4] or 0), tonumber(f[5] or 0), 0
	r.anew = r.held == 0 or r.gone
	if units == 0 or r.held > 0 and not gather(r, rule, leases) or r.used + r.held + units > rule.limit then return end
	r.version = rule.archived and versionOf(f[6], f[7])
	if rule.archived and not r.version then return end
	r.needed = needed(r, rule, leases, leased)
	return true
end

-- hold writes down what is reserved. Leases last as long as their counter.
local function hold(r, key, leases, units, lease, member)
	if r.over > 0 then call('ZREMRANGEBYRANK', leases, 0, r.over - 1) end
	if r.gone then call('HDEL', key, unpack(r.gone)) end
	call('ZADD', leases, lease.score, member)
	local more = r.needed > r.lasts
	local anew = more or r.anew or lease.ends < r.first -- what is known of the leases
	if r.held == 0 or lease.ends < r.first then r.first = lease.score end
	if more then r.lasts = min(r.needed + SLACK, ms + LONGEST) end
	r.held = r.held + units
	if anew and r.version then
		call('HSET', key, 'h', r.held, 'u', r.used, r.place, r.at, 'e', r.lasts, 'f', r.first, 'v', r.version)
	elseif anew then
		call('HSET', key, 'h', r.held, 'u', r.used, r.place, r.at, 'e', r.lasts, 'f', r.first)
	elseif r.version then
		call('HSET', key, 'h', r.held, 'v', r.version)
	else
		call('HSET', key, 'h', r.held)
	end
	if more then call('PEXPIREAT', key, r.lasts) end
	if anew then call('PEXPIREAT', leases, r.lasts) end
end

local told, a = {}, 5
for i = 1, tonumber(ARGV[4]) do
	local window = tonumber(ARGV[a + 4])
	told[tostring(i)] = {kind = ARGV[a], limit = tonumber(ARGV[a + 1]), archived = ARGV[a + 2] == '1', keep = ARGV[a + 3] == '1',
		from = ARGV[a + 4], to = ARGV[a + 5], window = window,
		length = ARGV[a] == 's' and ceil(window / SLOTS * CELLS) or tonumber(ARGV[a + 5]) - window}
	a = a + OF_RULE
end

-- leases are those that begin now, by their length.
local leases = {['0'] = {ends = 0}}
local function leaseOf(length)
	local n = tonumber(length)
	local score = format('%.0f', ms + n)
	local lease = {ends = ms + n, score = score, record = ' ' .. score .. ' 0 ', keep = format('%.0f', n + ARGV[2]), known = format('%.0f', n + ARGV[3])}
	leases[length] = lease
	return lease
end

local rules, answer, n, key = {}, {}, 0, 1
while KEYS[key] do
	local lease, fingerprint, count, decided = leases[ARGV[a]] or leaseOf(ARGV[a]), ARGV[a + 1], tonumber(ARGV[a + 2]), true
	local own, index, user, note = KEYS[key]
	key, a = key + 1, a + 3
	local step, of = 1, 2 -- keys and arguments of a rule
	if lease.score then
		index, user, note = KEYS[key], ARGV[a], ARGV[a + 1]
		key, a, step, of = key + 1, a + 2, 2, 3
	end
	for i = 0, count - 1 do
		local r, counter, argument = rules[i] or {}, key + i * step, a + i * of
		rules[i] = r
		if decided then
			local rule, units = told[ARGV[argument]], tonumber(ARGV[argument + 1])
			if index then
				r.units = units
				decided = reserves(r, rule, units, KEYS[counter], KEYS[counter + 1], lease.ends)
			else
				decided = consumes(r, rule, units, KEYS[counter])
			end
		end
	end
	n = n + 1
	if not decided then
		answer[n] = 0
	elseif not index then
		if call('SET', own, 'T ' .. fingerprint, 'NX', 'PX', remember) then
			answer[n] = 1
			for i = 0, count - 1 do
				local r = rules[i]
				if r.units > 0 then charge(r, KEYS[key + i]) end
				answer[n + 1], answer[n + 2] = r.used, r.used > 0 and r.back or 0
				n = n + 2
			end
		else
			answer[n] = 0
		end
	elseif not call('SET', own, 'H ' .. fingerprint .. lease.record .. note, 'NX', 'PX', lease.keep) then
		answer[n] = 0
	elseif not call('SET', index, user, 'NX', 'PX', lease.known) then
		call('DEL', own)
		answer[n] = 0
	else
		answer[n], answer[n + 1] = 1, lease.ends
		n = n + 1
		for i = 0, count - 1 do
			local r, counter = rules[i], key + i * 2
			hold(r, KEYS[counter], KEYS[counter + 1], r.units, lease, ARGV[a + i * of + 2])
			answer[n + 1], answer[n + 2], answer[n + 3] = r.used, r.held, r.used > 0 and r.back or 0
			n = n + 3
		end
	end
	key, a = key + count * step, a + count * of
end
return answer
