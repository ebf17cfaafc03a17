-- Settles a reservation: charges what it cost, or gives it back.
--
-- KEYS[1]: the operation. ARGV: C to commit, R to release or U to undo one attempt at reserving (see hold.lua), the
-- tokens it cost, how long to remember in ms, the operation's id, the attempt, or what must be written down of the
-- reservation (empty: anything). Answers 1 settled, 2 repeated, 3 committed with another cost, 4 the caller's clock is
-- too far off, 5 no such reservation, 6 released before, 7 committed before, 11 something else is written down; when its
-- lease ends; states.
local mode, tokens, remember, id = ARGV[1], number(ARGV[2]), number(ARGV[3]), ARGV[4]
local before = redis.call('GET', KEYS[1])
if not before then return {5} end
local state, content, expire, cost, rest = string.match(before, '^(%a) (%S+) (%d+) (%d+) (.*)$')
local ends = number(expire)
if not state then return {5} end -- it consumed
if mode ~= 'U' and ARGV[5] ~= '' and ARGV[5] ~= rest then return {11} end
if state == 'R' and mode == 'C' then return {6} end
if state == 'C' and mode == 'R' then return {7} end
if state == 'C' and number(cost) ~= tokens then return {3} end
if mode == 'U' then
	local others = {}
	for attempt in string.gmatch(rest, '%S+') do
		if attempt ~= ARGV[5] then others[#others + 1] = attempt end
	end
	rest = table.concat(others, ' ')
end

local all, elsewhen = rules()
if elsewhen then return {4, ms} end
if state ~= 'H' then return states(all, {2, ends}) end
if mode == 'U' and rest ~= '' then
	redis.call('SET', KEYS[1], string.format('H %s %.0f 0 ', content, ends) .. rest, 'PX', max(0, ends - ms) + remember)
	return states(all, {1, ends})
end

for _, c in ipairs(all) do
	if c.changed then save(c) end -- so that this operation, if it was abandoned, is not found below
	local charged = 0 -- because it was abandoned
	if c.units > 0 then
		if redis.call('ZREM', c.leases, string.format('%.0f ', c.units) .. id) == 1 then
			c.held = max(0, c.held - c.units)
		elseif c.keep and ms >= ends then
			charged = c.units
		end
	end
	if c.cost > charged then c.w.charge(c, c.cost - charged) end
	if c.cost < charged then c.w.refund(c, charged - c.cost, ends) end
	save(c)
end
if mode == 'U' then
	redis.call('DEL', KEYS[1]) -- as if it had never been
	return states(all, {1, ends})
end
redis.call('SET', KEYS[1], mode .. ' ' .. content .. string.format(' %.0f %.0f ', ends, tokens) .. rest, 'PX', remember)
return states(all, {1, ends})
