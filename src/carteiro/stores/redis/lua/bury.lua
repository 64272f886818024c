#!lua flags=allow-oom
-- Shows dead letters in the index until their expiry. KEYS: the prefix. ARGV: expiry, id of each.
redis.call('ZADD', P:sub(2, -2), unpack(ARGV))
