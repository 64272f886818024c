#!lua flags=allow-oom
-- Removes dead letters from the index. KEYS: the prefix. ARGV: the ids.
redis.call('ZREM', P:sub(2, -2), unpack(ARGV))
