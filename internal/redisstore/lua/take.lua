-- Takes or reserves from all rules, or from none.
--
-- KEYS[1]: the operation. ARGV: fingerprint of the content, lease in ms (0: none), how long to remember in ms, the
-- operation's id, what to write down of a reservation; and if this is all of a reservation, and not in a Cluster, the
-- key that tells whose it is, its user, and how long to know that. Answers 0 denied, 1 admitted, 2 repeated, 3 another
-- content under the same id, 4 the caller's clock is too far off, and Redis's, 10 repeated of a reservation that was
-- settled; when the lease ends; states.
local fingerprint, lease, remember, id = ARGV[1], number(ARGV[2]), number(ARGV[3]), ARGV[4]
local index, user = ARGV[6], ARGV[7]
if index ~= '' then
	local owner = redis.call('GET', index)
	if owner and owner ~= user then return {3} end
end
local before = redis.call('GET', KEYS[1])
local ends, again
if before then
	local state, content, expire = string.match(before, '^(%a) (%S+) ?(%d*)')
	if content ~= fingerprint then return {3} end
	ends, again = number(expire), (state == 'C' or state == 'R') and 10 or 2
end

local all, elsewhen = rules()
if elsewhen then return {4, ms} end
if before then return states(all, {again, ends}) end

local denied = false
for _, c in ipairs(all) do
	c.denied = not c.shadow and c.used + c.held + c.units > c.limit
	denied = denied or c.denied
end
if denied then
	for _, c in ipairs(all) do
		if c.changed then save(c) end -- what was abandoned
	end
	return states(all, {0, 0})
end

ends = 0
if lease > 0 then ends = ms + lease end
for _, c in ipairs(all) do
	if c.units > 0 then
		if lease > 0 then
			c.held = c.held + c.units
			redis.call('ZADD', c.leases, ends, string.format('%.0f ', c.units) .. id)
		else
			c.w.charge(c, c.units)
		end
		c.changed = true
	end
	if c.changed then save(c) end
end
local record = 'T ' .. fingerprint
if lease > 0 then record = 'H ' .. fingerprint .. string.format(' %.0f 0 ', ends) .. ARGV[5] end
redis.call('SET', KEYS[1], record, 'PX', lease + remember)
if index ~= '' then redis.call('SET', index, user, 'PX', ARGV[8]) end
return states(all, {1, ends})
