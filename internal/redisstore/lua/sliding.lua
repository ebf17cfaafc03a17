-- A window that slides. u: units used; o: the oldest slot that has some; 0 to 60: units used in the slots, each in
-- the cell that is its number modulo 61. All slots in use are among o to o+60.
--
-- Units from ahead of the clock were taken by one that was ahead of this one, or this one is behind. They count, and
-- come back when this clock has come to where they were taken and a window further; those from more than a window ahead
-- as if they were taken now, so that a clock that was wrong for a moment locks nobody out for long.
function make.s()
	local sliding = {}

	function sliding.load(c)
		c.slot = floor(ms * SLOTS / c.w1)
		local f = redis.call('HMGET', c.key, 'h', 'u', 'o', c.slot % CELLS)
		c.held, c.used, c.oldest = number(f[1]), number(f[2]), number(f[3])
		if c.used > 0 then
			if c.oldest < c.slot - SLOTS then
				sliding.drop(c)
			elseif c.slot < c.oldest then
				if c.oldest - c.slot > SLOTS then sliding.date(c) end
				c.slot, c.behind = c.oldest, not c.moved
			else
				c.dated = c.held == 0 and number(f[4]) > 0 -- what is charged now expires with what was in this slot
			end
		end
	end

	-- date has all that is used count as taken now.
	function sliding.date(c)
		c.gone = {}
		for cell = 0, SLOTS do c.gone[cell + 1] = cell end
		c.oldest, c.cells, c.dated, c.moved, c.changed = c.slot, {[c.slot % CELLS] = c.used}, nil, true, true
		c.redated = true
	end

	-- cells lists slot and units of what is used, oldest first.
	function sliding.cells(c)
		if c.moved then return {{slot = c.oldest, units = c.used}} end
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
		local slot = at and not c.behind and floor(at * SLOTS / c.w1) or c.slot
		if slot < c.slot - SLOTS then return end
		c.cells = c.cells or {}
		c.cells[slot % CELLS] = (c.cells[slot % CELLS] or 0) + units
		if c.used == 0 or slot < c.oldest then c.oldest = slot end
		c.used = c.used + units
	end

	function sliding.refund(c, units, at)
		local slot = floor(at * SLOTS / c.w1)
		if slot < c.slot - SLOTS or slot < c.oldest or slot > c.oldest + SLOTS then return end
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
		c.gone, c.cells, c.refunded, c.moved = nil, nil, nil, nil
		redis.call('HSET', c.key, 'h', c.held, 'u', c.used, 'o', c.oldest)
		if not c.dated or c.held > 0 then return start(c, c.slot + CELLS) end
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

	return sliding
end
