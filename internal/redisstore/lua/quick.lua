-- The commonest reservation for less: of fixed windows and calendars, while no lease has run out and nothing came back. All
-- others are decided by the text that follows, which would decide this one alike, and takes longer, most of it to make what
-- those need. Nothing is written before all is read.
--
-- e: until when the counter and its leases are known to last, so that this need not be written each time; 0: as long as
-- was needed when it was last written.
local SLACK = 60000
local function quick()
	if ARGV[2] == '0' then return end
	local lease, index = tonumber(ARGV[2]), ARGV[6]
	if redis.call('GET', KEYS[1]) then return end
	local owner = index ~= '' and redis.call('GET', index)
	if owner and owner ~= ARGV[7] then return end
	local leased = ms + lease
	local answer, count, writes = {1, leased}, (#KEYS - 1) / 2, {}
	for i = 1, count do
		local a, key = FIRST + (i - 1) * STRIDE, KEYS[2 * i]
		local kind, units, w1 = ARGV[a], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 6])
		if units == 0 then return end
		local f, held, used, needed, back, third
		if kind == 's' then
			local slot = floor(ms * SLOTS / w1)
			f = redis.call('HMGET', key, 'h', 'u', 'o', 'e')
			used, third = tonumber(f[2] or 0), tonumber(f[3] or 0)
			if used > 0 and (third < slot - SLOTS or slot < third) then return end
			needed = max(ceil((slot + CELLS) * w1 / SLOTS), leased + ceil(w1 / SLOTS * CELLS) + 1000)
			back = ceil((third + CELLS) * w1 / SLOTS)
		elseif kind == 'c' then
			local begin, ends = tonumber(ARGV[a + 7]), tonumber(ARGV[a + 8])
			f = redis.call('HMGET', key, 'h', 'u', 'p', 'e')
			if f[3] ~= ARGV[a + 7] or ms < begin or ends <= ms then return end
			used, third = tonumber(f[2] or 0), begin
			needed = max(ends, leased + ends - begin + 1000)
			back = ends
		else
			return
		end
		held = tonumber(f[1] or 0)
		if held > 0 then
			local first = redis.call('ZRANGE', KEYS[2 * i + 1], 0, 0, 'WITHSCORES')
			if not first[1] or tonumber(first[2]) <= ms then return end
		end
		if used + held + units > tonumber(ARGV[a + 1]) then return end
		local lasts = tonumber(f[4] or 0)
		if lasts == 0 and held > 0 then -- those that are held may need it for longer
			local last = redis.call('ZRANGE', KEYS[2 * i + 1], -1, -1, 'WITHSCORES')
			needed = max(needed, needed - leased + tonumber(last[2]))
		end
		if needed > lasts then lasts, needed = min(needed + SLACK, ms + LONGEST), true else needed = false end
		writes[i] = {held + units, used, kind == 's' and 'o' or 'p', third, lasts, needed, string.format('%.0f ', units) .. ARGV[4]}
		local n = 5 * i - 2
		answer[n], answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = used, held + units, used > 0 and back or 0, 0, 0
	end
	for i = 1, count do
		local w, key, leases = writes[i], KEYS[2 * i], KEYS[2 * i + 1]
		redis.call('ZADD', leases, leased, w[7])
		if versions[i] then
			redis.call('HSET', key, 'h', w[1], 'u', w[2], w[3], w[4], 'e', w[5], 'v', max(us, versions[i] + 1))
			answer[5 * count + 3] = 1
		elseif w[6] then
			redis.call('HSET', key, 'h', w[1], 'u', w[2], w[3], w[4], 'e', w[5])
		else
			redis.call('HSET', key, 'h', w[1])
		end
		if w[6] then
			redis.call('PEXPIREAT', key, w[5])
			redis.call('PEXPIREAT', leases, w[5])
		end
	end
	redis.call('SET', KEYS[1], 'H ' .. ARGV[1] .. string.format(' %.0f 0 ', leased) .. ARGV[5], 'PX', lease + ARGV[3])
	if index ~= '' then redis.call('SET', index, ARGV[7], 'PX', ARGV[8]) end
	return answer
end

local answer = quick()
if answer then return answer end

