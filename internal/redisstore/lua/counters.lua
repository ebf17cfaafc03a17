-- How one rule's counter is kept. Every script begins with this text; those that follow it decide.
--
-- KEYS[2i], KEYS[2i+1]: the counter (a hash) and the leases (a sorted set) of rule i; KEYS[1] is the script's own.
-- ARGV, from FIRST on: ten of each rule, as written in rule() below.
--
-- All that is counted is whole numbers below 2^53, where doubles are exact. Keys are read before any is written, so
-- that a script which may not read one of them has changed nothing.
local STRIDE = 10
local SLOTS, CELLS = 60, 61 -- a unit counts in the slot it was taken in and in the 60 after it
local LONGEST = 2 * 366 * 86400000
local LEASES_AT_ONCE = 1000

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local ms = floor(us / 1000)

local function number(text) return tonumber(text or 0) or 0 end

-- A window that slides. u: units used; o: the oldest slot that has some; 0 to 60: units used in the slots, each in
-- the cell that is its number modulo 61. All slots in use are among o to o+60.
local sliding = {}

function sliding.load(c)
	c.slot = floor(ms * SLOTS / c.w1)
	local f = redis.call('HMGET', c.key, 'h', 'u', 'o')
	c.held, c.used, c.oldest = number(f[1]), number(f[2]), number(f[3])
	if c.used > 0 and c.oldest < c.slot - SLOTS then sliding.drop(c) end
	-- The clock of a Redis that took over may be behind.
	if c.used > 0 and c.slot < c.oldest then c.slot = c.oldest end
end

-- cells lists slot and units of what is used, oldest first.
function sliding.cells(c)
	local names = {}
	for k = 0, SLOTS do names[k + 1] = (c.oldest + k) % CELLS end
	local units, list = redis.call('HMGET', c.key, unpack(names)), {}
	for k = 0, SLOTS do
		local n = number(units[k + 1])
		if n > 0 then list[#list + 1] = {slot = c.oldest + k, units = n} end
	end
	return list
end

function sliding.drop(c)
	local gone, used, oldest = {}, 0, nil
	for _, cell in ipairs(sliding.cells(c)) do
		if cell.slot < c.slot - SLOTS then
			gone[#gone + 1] = cell.slot % CELLS
		else
			used, oldest = used + cell.units, oldest or cell.slot
		end
	end
	c.gone, c.used, c.oldest, c.changed = gone, used, oldest or 0, true
end

local function start(c, slot) return ceil(slot * c.w1 / SLOTS) end

function sliding.charge(c, units, at)
	local slot = at and floor(at * SLOTS / c.w1) or c.slot
	if slot < c.slot - SLOTS then return end
	c.cells = c.cells or {}
	c.cells[slot % CELLS] = (c.cells[slot % CELLS] or 0) + units
	if c.used == 0 or slot < c.oldest then c.oldest = slot end
	c.used = c.used + units
end

function sliding.refund(c, units, at)
	local slot = floor(at * SLOTS / c.w1)
	if slot < c.slot - SLOTS then return end
	units = min(units, number(redis.call('HGET', c.key, slot % CELLS)))
	if units > 0 then
		sliding.charge(c, -units, at)
		c.refunded = true
	end
end

function sliding.save(c)
	if c.gone and #c.gone > 0 then redis.call('HDEL', c.key, unpack(c.gone)) end
	for cell, units in pairs(c.cells or {}) do redis.call('HINCRBY', c.key, cell, units) end
	if c.refunded and c.used > 0 then c.oldest = sliding.cells(c)[1].slot end
	c.gone, c.cells, c.refunded = nil, nil, nil
	redis.call('HSET', c.key, 'h', c.held, 'u', c.used, 'o', c.oldest)
	return start(c, c.slot + CELLS)
end

function sliding.reset(c) return start(c, c.oldest + CELLS) end

function sliding.returns(c)
	local events = {}
	if c.used > 0 then
		for _, cell in ipairs(sliding.cells(c)) do
			events[#events + 1] = {at = start(c, cell.slot + CELLS), units = cell.units}
		end
	end
	return events
end

-- When units that are charged at an instant come back.
function sliding.back(c, at) return start(c, floor(at * SLOTS / c.w1) + CELLS) end

function sliding.length(c) return ceil(c.w1 / SLOTS * CELLS) end

-- Periods of the calendar. p: when the period began that is counted; u: units used in it. w1 to w4 are when the
-- last, this and the next period begin, and when that ends, as the caller's clock has it; Redis's decides.
local calendar = {}

function calendar.load(c)
	local edges = {c.w1, c.w2, c.w3, c.w4}
	for i = 1, 3 do
		if edges[i] <= ms and ms < edges[i + 1] then c.period, c.ends, c.next = edges[i], edges[i + 1], edges[i + 2] end
	end
	local f = redis.call('HMGET', c.key, 'h', 'u', 'p')
	c.held, c.used = number(f[1]), number(f[2])
	if not c.period then c.elsewhen = true; return end
	-- Another node's calendar may be a newer edition: a period begins once.
	if number(f[3]) < c.period then c.used = 0 else c.period = number(f[3]) end
end

function calendar.charge(c, units, at)
	if not at or at >= c.period then c.used = c.used + units end
end

function calendar.refund(c, units, at)
	if at >= c.period then c.used = max(0, c.used - units) end
end

function calendar.save(c)
	redis.call('HSET', c.key, 'h', c.held, 'u', c.used, 'p', c.period)
	return c.ends
end

function calendar.reset(c) return c.ends end

function calendar.returns(c) return {{at = c.ends, units = c.used}} end

function calendar.back(c, at) return at < c.ends and c.ends or c.next or c.ends end

function calendar.length(c) return c.ends - c.period end

-- A bucket. a: when it was last full, in microseconds; n: units used since. What has come back since is counted from
-- there, too, so that no rounding adds up.
local bucket = {}

function bucket.load(c)
	local f = redis.call('HMGET', c.key, 'h', 'n', 'a')
	c.held, c.taken, c.anchor = number(f[1]), number(f[2]), number(f[3])
end

local function refilled(c, at) return floor(max(0, at - c.anchor) * c.w1 / 1000000) end

function bucket.advance(c, at)
	c.used = c.taken - refilled(c, at)
	if c.used <= 0 then c.taken, c.used, c.anchor = 0, 0, max(at, c.anchor) end
end

function bucket.charge(c, units, at)
	if at then bucket.advance(c, at * 1000) end
	c.taken, c.used = c.taken + units, c.used + units
end

function bucket.refund(c, units)
	units = min(units, c.used)
	c.taken, c.used = c.taken - units, c.used - units
end

-- In milliseconds, when so many more units have come back.
local function refilledBy(c, units) return ceil((c.anchor + (refilled(c, us) + units) * 1000000 / c.w1) / 1000) end

function bucket.save(c)
	redis.call('HSET', c.key, 'h', c.held, 'n', c.taken, 'a', c.anchor)
	return refilledBy(c, c.used) + 1
end

function bucket.reset(c) return refilledBy(c, 1) end

-- When the units fit, having lived through the ends of the leases.
function bucket.wait(c, ends)
	local b, held, after = {w1 = c.w1, anchor = c.anchor, taken = c.taken}, c.held, ms
	for i = 1, #ends + 1 do
		local room, lease = c.limit - held - c.units, ends[i]
		if room >= 0 then
			local at = max(after, ceil((b.anchor + max(0, b.taken - room) * 1000000 / b.w1) / 1000))
			if not lease or at < lease.at then return at end
		end
		if not lease then break end
		bucket.advance(b, lease.at * 1000)
		held, after = held - lease.units, lease.at
		if c.keep then bucket.charge(b, lease.units) end
	end
	return after
end

function bucket.length(c) return ceil(max(c.limit, c.held) * 1000 / c.w1) end

-- Places: they are held, never used up.
local places = {}

function places.load(c) c.held, c.used = number(redis.call('HGET', c.key, 'h')), 0 end
function places.charge() end
function places.refund() end
function places.save(c) redis.call('HSET', c.key, 'h', c.held); return ms end
function places.returns() return {} end
function places.length() return 0 end

local kinds = {s = sliding, c = calendar, b = bucket, p = places}

-- settleAbandoned gives back or charges what nobody settled, as it would have been when its lease ran out.
local function settleAbandoned(c)
	if c.held == 0 then return end
	local first = redis.call('ZRANGE', c.leases, 0, 0, 'WITHSCORES')
	if not first[1] then -- nobody holds anything
		c.held, c.changed = 0, true
		return
	end
	if number(first[2]) > ms then return end
	local over = redis.call('ZRANGEBYSCORE', c.leases, '-inf', ms, 'WITHSCORES', 'LIMIT', 0, LEASES_AT_ONCE)
	for i = 1, #over, 2 do
		local units = number(string.match(over[i], '^%d+'))
		c.held = max(0, c.held - units)
		if c.keep then c.w.charge(c, units, number(over[i + 1])) end
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
	}
	c.w = kinds[c.kind]
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
	if c.held == 0 and c.used == 0 then
		redis.call('DEL', c.key, c.leases)
		return
	end
	local ends = c.w.save(c)
	if c.held > 0 then
		local last = redis.call('ZRANGE', c.leases, -1, -1, 'WITHSCORES')
		ends = max(ends, max(ms, number(last[2])) + c.w.length(c) + 1000)
		redis.call('PEXPIREAT', c.leases, min(ends, ms + LONGEST))
	end
	redis.call('PEXPIREAT', c.key, min(ends, ms + LONGEST))
end

-- wait is in how many milliseconds the units that were denied could be taken, if nobody takes or settles any: -1
-- for never. The counter must have been saved. Of many leases, it looks at the first hundred.
local function wait(c)
	if c.units > c.limit then return -1 end
	local leases = c.held > 0 and redis.call('ZRANGE', c.leases, 0, 99, 'WITHSCORES') or {}
	local ends = {}
	for i = 1, #leases, 2 do
		ends[#ends + 1] = {at = number(leases[i + 1]), units = number(string.match(leases[i], '^%d+'))}
	end
	if c.w.wait then return c.w.wait(c, ends) - ms end
	local over, events, after = c.used + c.held + c.units - c.limit, c.w.returns(c), ms
	for _, lease in ipairs(ends) do
		if c.keep then lease.at = c.w.back(c, lease.at) end
		events[#events + 1] = lease
	end
	table.sort(events, function(a, b) return a.at < b.at end)
	for _, event in ipairs(events) do
		over, after = over - event.units, event.at
		if over <= 0 then break end
	end
	return after - ms
end

-- states are the answers' part about rules: five numbers of each.
local function states(all, answer)
	for _, c in ipairs(all) do
		local n = #answer
		answer[n + 1], answer[n + 2] = c.used, c.held
		answer[n + 3] = c.used > 0 and c.w.reset(c) or 0
		answer[n + 4], answer[n + 5] = c.denied and 1 or 0, c.denied and wait(c) or 0
	end
	return answer
end
