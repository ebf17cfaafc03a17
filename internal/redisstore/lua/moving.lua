-- While a slot of a Cluster moves, a script that was let in may not touch keys which it has just deleted, and would
-- stop in the middle. Two keys that are never there can't be looked for then, on either side.
if type(redis.pcall('EXISTS', KEYS[1] .. '\0', KEYS[1] .. '\1')) == 'table' then
	return redis.error_reply('TRYAGAIN the slot moves')
end

