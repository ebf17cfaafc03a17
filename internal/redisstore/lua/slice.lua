-- Charges what a node spent of its slice, and leases it another one, in one step.
--
-- KEYS[1]: the slice: the number of the last request, the total that it reported, and the units that are held. ARGV:
-- the request's number; the total that the node spent and doesn't undo; the total of which it knows that it is charged;
-- units that it keeps; units that its callers wait for, and the least of them; units that it would like; lease in ms; how
-- long to remember in ms; the holder. All are absolute: a request does what those before it did not, and does
-- nothing if a later one came first. Answers 1, 4 the caller's clock is too far off, or 8 there was a later one; units
-- granted; states, where a denial and its wait are those of the least that could not be granted.
local SHARE = 8 -- what nobody waits for is at most so great a part of what is left

local sequence, total, charged = number(ARGV[1]), number(ARGV[2]), number(ARGV[3])
local keep, need, least, want = number(ARGV[4]), number(ARGV[5]), number(ARGV[6]), number(ARGV[7])
local lease, remember, holder = number(ARGV[8]), number(ARGV[9]), ARGV[10]
local before = redis.call('GET', KEYS[1])
local last, reported, units = -1, 0, 0
if before then
	last, reported, units = string.match(before, '^(%d+) (%d+) (%d+)$')
	last, reported, units = number(last), number(reported), number(units)
end
if sequence < last then return {8} end

local all, elsewhen = rules()
if elsewhen then return {4, ms} end
local c = all[1]
local function member(n) return string.format('%.0f #', n) .. holder end

if sequence > last then
	if c.changed then save(c) end -- so that a slice whose lease ran out is not found below
	if before and (units == 0 or redis.call('ZREM', c.leases, member(units)) == 1) then
		c.held, charged = max(0, c.held - units), reported
	end
	if total > charged then c.w.charge(c, total - charged) end
	local room, grant = c.limit - c.used - c.held - keep, 0
	if room >= least then grant = max(0, min(room, max(need, min(want, floor(room / SHARE))))) end
	units = keep + grant
	if units > 0 then
		c.held = c.held + units
		redis.call('ZADD', c.leases, ms + lease, member(units))
	end
	save(c)
	redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', sequence, total, units), 'PX', remember)
end

local grant = units - keep
c.units = (need == 0 or grant < need) and max(1, least) or 1
c.denied = c.limit - c.used - c.held < c.units
local answer = states(all, {1, grant})
if c.used == 0 and c.w.reset then -- what is spent next comes back then
	c.w.charge(c, 1)
	answer[5] = c.w.reset(c)
end
return answer
