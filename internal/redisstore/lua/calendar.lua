-- Periods of the calendar. p: when the period began that is counted; u: units used in it. w1 to w4 are when the
-- last, this and the next period begin, and when that ends, as the caller's clock has it; Redis's decides.
--
-- A clock that goes back gives nothing back: what was used of the next period counts in this one, and until that one
-- ends. What was used of a later one counts in this one only: that clock was wrong.
function make.c()
	local calendar = {}

	function calendar.load(c)
		local edges = {c.w1, c.w2, c.w3, c.w4}
		for i = 1, 3 do
			if edges[i] <= ms and ms < edges[i + 1] then c.period, c.ends, c.next = edges[i], edges[i + 1], edges[i + 2] end
		end
		local f = redis.call('HMGET', c.key, 'h', 'u', 'p')
		c.held, c.used = number(f[1]), number(f[2])
		if not c.period then c.elsewhen = true; return end
		c.since = c.period
		local counted = number(f[3])
		if counted < c.period then
			c.used = 0
		elseif counted < c.ends then -- another node's calendar may be a newer edition: a period begins once
			c.since, c.period = counted, counted
		elseif not c.next then -- the caller's clock is behind: it must tell more
			c.elsewhen = true
		elseif counted < c.next then
			c.period, c.ends, c.next = counted, c.next, nil
		else
			c.changed, c.redated = true, true
		end
	end

	function calendar.charge(c, units, at)
		if not at or at >= c.since then c.used = c.used + units end
	end

	function calendar.refund(c, units, at)
		if at >= c.since then c.used = max(0, c.used - units) end
	end

	function calendar.save(c)
		redis.call('HSET', c.key, 'h', c.held, 'u', c.used, 'p', c.period)
		return c.ends
	end

	function calendar.reset(c) return c.ends end

	function calendar.returns(c) return {{at = c.ends, units = c.used}} end

	function calendar.back(c, at) return at < c.ends and c.ends or c.next or c.ends end

	function calendar.length(c) return c.ends - c.period end

	return calendar
end
