-- A bucket. a: when it was last full, in microseconds; n: units used since. What has come back since is counted from
-- there, too, so that no rounding adds up. A clock that goes back gives nothing back; but what lies further ahead of
-- it than what was taken takes to come back was taken by a clock that was wrong, and counts as taken now.
function make.b()
	local bucket = {}

	function bucket.load(c)
		local f = redis.call('HMGET', c.key, 'h', 'n', 'a')
		c.held, c.taken, c.anchor = number(f[1]), number(f[2]), number(f[3])
		if c.anchor - us > c.taken * 1000000 / c.w1 then c.anchor, c.changed, c.redated = us, true, true end
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
			if lease.kept then bucket.charge(b, lease.units) end
		end
		return after
	end

	function bucket.length(c) return ceil(max(c.limit, c.held) * 1000 / c.w1) end

	return bucket
end
