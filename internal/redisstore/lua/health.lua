-- Takes records of the health of tools and servers that nobody else changed meanwhile, and tells what others changed.
-- KEYS[1]: the records (a hash), with the epoch and the version of the last write. KEYS[2]: the versions of the records
-- (a sorted set). A version is Redis's time of the write in microseconds, or one more than the last.
-- ARGV: the epoch that the node knows; the version up to which it knows all; an epoch to begin with; for how many
-- microseconds and of how many subjects records are kept; then of each record that is offered the subject, the version
-- that the node knows (0: none), and the text.
-- Returns Redis's time in microseconds, the epoch, the last version, a list of the versions that the records offered
-- got (0: not taken), and a list of subject, version, text of what others changed. Nothing is taken from a node that
-- knows another epoch: it is told all.
-- A text that is there already was taken before, when this ran and its answer was lost: it stays as it is.
local FORGET_AT_ONCE, READ_AT_ONCE = 100, 500
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local epoch = redis.call('HGET', KEYS[1], 'epoch')
local last = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
local since = tonumber(ARGV[2])

-- A replica that took over may lack the last writes: then nobody can be told what changed since.
if not epoch or (epoch == ARGV[1] and since > last) then
  epoch = ARGV[3]
  redis.call('HSET', KEYS[1], 'epoch', epoch)
end
local same = epoch == ARGV[1]
if not same then since = 0 end

local function forget(subjects)
  for _, subject in ipairs(subjects) do
    redis.call('HDEL', KEYS[1], subject)
    redis.call('ZREM', KEYS[2], subject)
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - tonumber(ARGV[4])), 'LIMIT', 0, FORGET_AT_ONCE))
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[5])
if over > 0 then forget(redis.call('ZRANGE', KEYS[2], 0, math.min(over, FORGET_AT_ONCE) - 1)) end

local told = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.0f', since), '+inf')
local taken, changed = {}, {}
local function tell(subject, version, text)
  changed[#changed + 1] = subject
  changed[#changed + 1] = version
  changed[#changed + 1] = text
end
for first = 1, #told, READ_AT_ONCE do
  local subjects = {}
  for i = first, math.min(#told, first + READ_AT_ONCE - 1) do subjects[#subjects + 1] = told[i] end
  local texts = redis.call('HMGET', KEYS[1], unpack(subjects))
  for i, subject in ipairs(subjects) do
    tell(subject, tonumber(redis.call('ZSCORE', KEYS[2], subject)), texts[i] or '')
  end
end

local written = false
for i = 6, #ARGV, 3 do
  local subject = ARGV[i]
  local version = tonumber(redis.call('ZSCORE', KEYS[2], subject) or 0)
  if same and version == tonumber(ARGV[i + 1]) then
    last = math.max(last + 1, now)
    redis.call('HSET', KEYS[1], subject, ARGV[i + 2])
    redis.call('ZADD', KEYS[2], string.format('%.0f', last), subject)
    taken[#taken + 1] = last
    written = true
  elseif same and version > 0 and redis.call('HGET', KEYS[1], subject) == ARGV[i + 2] then
    taken[#taken + 1] = version
  else
    taken[#taken + 1] = 0
    if same and version <= since then tell(subject, version, redis.call('HGET', KEYS[1], subject) or '') end
  end
end
if written then redis.call('HSET', KEYS[1], 'version', string.format('%.0f', last)) end
if written or not same then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', tonumber(ARGV[4]) / 500))
  redis.call('PEXPIRE', KEYS[2], string.format('%.0f', tonumber(ARGV[4]) / 500))
end
return {now, epoch, last, taken, changed}
