-- Counts the nodes that said within ten seconds that they are there. KEYS[1]: the nodes (a sorted set), by when they
-- said so. ARGV: the name of the one that says so now. Whoever said so when the clock was ahead says so again, or is gone.
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 10)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')
redis.call('PEXPIRE', KEYS[1], 20000)
return redis.call('ZCARD', KEYS[1])
