#!lua flags=allow-oom
-- Dead letters leave the index. KEYS: the prefix. ARGV: the ids.
redis.call('ZREM', P:sub(2, -2), unpack(ARGV))
