-- Every script is moving.lua, if it is for a Cluster, this text, restore.lua, the kinds of windows, counters.lua, and what
-- it does with them; before that, FIRST is set. That which takes has quick.lua, too.
--
-- KEYS[2i], KEYS[2i+1]: the counter (a hash) and the leases (a sorted set) of rule i; KEYS[1] is the script's own.
-- ARGV, from FIRST on: eleven of each rule, as written in rule() below.
--
-- All that is counted is whole numbers below 2^53, where doubles are exact. Keys are read before any is written, so
-- that a script which may not read one of them has changed nothing; but for counters that were restored, which stay so.
local STRIDE = 11
local SLOTS, CELLS = 60, 61 -- a unit counts in the slot it was taken in and in the 60 after it
local LONGEST = 2 * 366 * 86400000
local LEASES_AT_ONCE = 1000

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local ms = floor(us / 1000)

local function number(text) return tonumber(text or 0) or 0 end

-- Functions that make those of a kind of window: only of kinds that a call has, because each call makes them anew.
local make = {}
