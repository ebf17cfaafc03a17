-- Places: they are held, never used up.
function make.p()
	local places = {}

	function places.load(c) c.held, c.used = number(redis.call('HGET', c.key, 'h')), 0 end
	function places.charge() end
	function places.refund() end
	function places.save(c) redis.call('HSET', c.key, 'h', c.held); return ms end
	function places.returns() return {} end
	function places.length() return 0 end

	return places
end
