-- How rules are read and written down, whatever their windows.

local kinds = {} -- that were made

-- kept tells of a lease that it is charged when it runs out. So is a slice, whose holder's name begins with #,
-- whatever the rule says: it may have been spent.
local function kept(c, lease) return c.keep or string.find(lease, ' #', 1, true) ~= nil end

-- shorten has leases from when the clock was ahead end no later than one that begins now could.
local function shorten(c)
	local ends = string.format('%.0f', ms + LONGEST_LEASE)
	local long = redis.call('ZRANGEBYSCORE', c.leases, '(' .. ends, '+inf', 'LIMIT', 0, LEASES_AT_ONCE)
	for _, member in ipairs(long) do redis.call('ZADD', c.leases, ends, member) end
end

-- settleAbandoned gives back or charges what nobody settled, as it would have been when its lease ran out.
local function settleAbandoned(c)
	if c.held == 0 then return end
	local first = redis.call('ZRANGE', c.leases, 0, 0, 'WITHSCORES')
	if not first[1] then -- nobody holds anything
		c.held, c.changed = 0, true
		return
	end
	if number(first[2]) > ms + LONGEST_LEASE then shorten(c) end
	if number(first[2]) > ms then return end
	local over = redis.call('ZRANGEBYSCORE', c.leases, '-inf', ms, 'WITHSCORES', 'LIMIT', 0, LEASES_AT_ONCE)
	for i = 1, #over, 2 do
		local units = number(string.match(over[i], '^%d+'))
		c.held = max(0, c.held - units)
		if kept(c, over[i]) then c.w.charge(c, units, number(over[i + 1])) end
	end
	c.over, c.changed = #over / 2, true
end

-- rule reads a rule and its counter as it stands now.
local function rule(i)
	local a = FIRST + (i - 1) * STRIDE
	local c = {
		key = KEYS[2 * i], leases = KEYS[2 * i + 1],
		kind = ARGV[a],
		limit = number(ARGV[a + 1]),
		units = number(ARGV[a + 2]), -- to take; when settling, those that were reserved
		cost = number(ARGV[a + 3]), -- when settling: those to charge
		shadow = ARGV[a + 4] == '1',
		keep = ARGV[a + 5] == '1', -- an abandoned reservation is charged
		w1 = number(ARGV[a + 6]), w2 = number(ARGV[a + 7]), w3 = number(ARGV[a + 8]), w4 = number(ARGV[a + 9]),
		version = versions[i], -- if it is archived, as the eleventh says
	}
	c.w = kinds[c.kind] or make[c.kind]()
	kinds[c.kind] = c.w
	c.w.load(c)
	if not c.elsewhen then
		settleAbandoned(c)
		if c.w.advance then c.w.advance(c, us) end
	end
	return c
end

-- rules reads them all. Nothing may be decided if it says that the caller's clock is too far off.
local function rules()
	local all, elsewhen = {}, false
	for i = 1, (#KEYS - 1) / 2 do
		all[i] = rule(i)
		elsewhen = elsewhen or all[i].elsewhen
	end
	return all, elsewhen
end

-- save writes a counter, and until when it is needed. Leases last as long as the counter: it tells what to do with
-- them when they have run out.
local function save(c)
	if c.over then redis.call('ZREMRANGEBYRANK', c.leases, 0, c.over - 1) end
	c.over, c.changed = nil, false
	local empty = c.held == 0 and c.used == 0
	if empty then redis.call('DEL', c.key, c.leases) end
	if c.version then
		dirty, c.version = true, max(us, c.version + 1)
		redis.call('HSET', c.key, 'v', c.version, 'm', master)
		if empty then redis.call('PEXPIREAT', c.key, ms + IDLE) end -- the archive shall know that it is
	end
	if empty then return end
	local ends = c.w.save(c)
	if not ends then return end -- as it is
	if c.held > 0 then
		local last = redis.call('ZRANGE', c.leases, -1, -1, 'WITHSCORES')
		ends = max(ends, max(ms, number(last[2])) + c.w.length(c) + 1000)
		redis.call('PEXPIREAT', c.leases, min(ends, ms + LONGEST))
	end
	redis.call('HSET', c.key, 'e', 0)
	redis.call('PEXPIREAT', c.key, min(ends, ms + LONGEST))
end

-- wait is in how many milliseconds the units that were denied could be taken, if nobody takes or settles any: -1
-- for never. The counter must have been saved. Of many leases, it looks at the first hundred.
local function wait(c)
	if c.units > c.limit then return -1 end
	local leases = c.held > 0 and redis.call('ZRANGE', c.leases, 0, 99, 'WITHSCORES') or {}
	local ends = {}
	for i = 1, #leases, 2 do
		ends[#ends + 1] = {at = number(leases[i + 1]), units = number(string.match(leases[i], '^%d+')), kept = kept(c, leases[i])}
	end
	if c.w.wait then return c.w.wait(c, ends) - ms end
	local over, events, after = c.used + c.held + c.units - c.limit, c.w.returns(c), ms
	for _, lease in ipairs(ends) do
		if lease.kept then lease.at = c.w.back(c, lease.at) end
		events[#events + 1] = lease
	end
	table.sort(events, function(a, b) return a.at < b.at end)
	for _, event in ipairs(events) do
		over, after = over - event.units, event.at
		if over <= 0 then break end
	end
	return after - ms
end

-- states are the answers' part about rules: five numbers of each, and a 1 if the archive should be told.
local function states(all, answer)
	for _, c in ipairs(all) do
		local n = #answer
		answer[n + 1], answer[n + 2] = c.used, c.held
		answer[n + 3] = c.used > 0 and c.w.reset(c) or 0
		answer[n + 4], answer[n + 5] = c.denied and 1 or 0, c.denied and wait(c) or 0
	end
	if dirty then answer[#answer + 1] = 1 end
	return answer
end
