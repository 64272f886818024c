#!lua flags=allow-oom
-- Sets or removes the limit that all claims of a kind share; a new limit counts the draws from the old one.
-- KEYS: the prefix. ARGV: kind, then count, per_ms, or nothing to lift it.
local clock = key('clock', ARGV[1])
if ARGV[2] then
  redis.call('HSET', clock, 'count', ARGV[2], 'per_ms', ARGV[3])
else
  redis.call('HDEL', clock, 'count', 'per_ms', 'draws')
end
bell()
