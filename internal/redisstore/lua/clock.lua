-- Every script is moving.lua, if it is for a Cluster, this text, master.lua, and what it does. But for plain.lua, that
-- begins with common.lua, restore.lua, the kinds of windows and counters.lua.
--
-- All that is counted is whole numbers below 2^53, where doubles are exact. Keys are read before any is written, so
-- that a script which may not read one of them has changed nothing; but for counters that were restored, which stay so.
local LONGEST = 2 * 366 * 86400000 -- that anything is kept
local LONGEST_LEASE = 86400000 -- as requests are validated
local SLOTS, CELLS = 60, 61 -- a unit counts in the slot it was taken in and in the 60 after it

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local ms = floor(us / 1000)

