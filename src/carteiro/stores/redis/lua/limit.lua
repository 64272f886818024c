#!lua flags=allow-oom
-- Sets or lifts the limit that all claims of a kind share; another limit counts what was drawn from the last.
-- KEYS: the prefix. ARGV: kind, then count, per_ms, or nothing to lift it.
local clock = key('clock', ARGV[1])
if ARGV[2] then
  redis.call('HSET', clock, 'count', ARGV[2], 'per_ms', ARGV[3])
else
  redis.call('HDEL', clock, 'count', 'per_ms', 'draws')
end
bell()
