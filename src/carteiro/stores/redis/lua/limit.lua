#!lua flags=allow-oom
-- Sets or lifts the limit that all claims of a kind share; the same again changes nothing.
-- KEYS: the prefix. ARGV: kind, then count, per_ms, interval_us, burst_us, or nothing to lift it.
local clock = key('clock', ARGV[1])
local before = redis.call('HMGET', clock, 'count', 'per_ms')
if before[1] ~= (ARGV[2] or false) or before[2] ~= (ARGV[3] or false) then
  redis.call('HDEL', clock, 'count', 'per_ms', 'interval_us', 'burst_us', 'next_us')
  if ARGV[2] then
    redis.call('HSET', clock, 'count', ARGV[2], 'per_ms', ARGV[3], 'interval_us', ARGV[4], 'burst_us', ARGV[5])
  end
end
bell()
