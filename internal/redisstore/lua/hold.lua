-- Reserves from one rule for an operation that reserves from others, too, under other tags.
--
-- Several attempts at one operation may run at once: a caller that got no answer asks again, perhaps another node.
-- They share the lease, and it is given back when all of them have undone it. An attempt that is repeated extends it.
--
-- KEYS[1]: the operation. ARGV: fingerprint of the content, lease in ms, how long to remember in ms, the operation's
-- id, the attempt. Answers as take.lua does; 2 says that the operation was settled.
local fingerprint, lease, remember, id, attempt = ARGV[1], number(ARGV[2]), number(ARGV[3]), ARGV[4], ARGV[5]
local before = redis.call('GET', KEYS[1])
local state, content, expire, attempts
if before then
	state, content, expire, attempts = string.match(before, '^(%a) (%S+) (%d+) %d+ ?(.*)$')
	if content ~= fingerprint then return {3} end
end

local all, elsewhen = rules()
if elsewhen then return {4, ms} end
if before and state ~= 'H' then return states(all, {2, number(expire)}) end

local c = all[1]
local member = string.format('%.0f ', c.units) .. id
if c.changed then save(c) end -- so that a lease which ran out is not found below
local holds = before and (c.units == 0 or redis.call('ZREM', c.leases, member) == 1)
if not holds then
	attempts = ''
	c.denied = not c.shadow and c.used + c.held + c.units > c.limit
	if c.denied then return states(all, {0, 0}) end
	c.held = c.held + c.units
end
local ends = ms + lease
if c.units > 0 then
	redis.call('ZADD', c.leases, ends, member)
	save(c)
end
if not string.find(' ' .. attempts .. ' ', ' ' .. attempt .. ' ', 1, true) then attempts = attempt .. ' ' .. attempts end
redis.call('SET', KEYS[1], string.format('H %s %.0f 0 ', fingerprint, ends) .. attempts, 'PX', lease + remember)
return states(all, {1, ends})
