-- What all scripts begin with but plain.lua; FIRST is set in front of it.
--
-- KEYS[2i], KEYS[2i+1]: the counter (a hash) and the leases (a sorted set) of rule i; KEYS[1] is the script's own.
-- ARGV, from FIRST on: eleven of each rule, as written in rule() below.
local STRIDE = 11
local LEASES_AT_ONCE = 1000

local function number(text) return tonumber(text or 0) or 0 end

-- Functions that make those of a kind of window: only of kinds that a call has, because each call makes them anew.
local make = {}

