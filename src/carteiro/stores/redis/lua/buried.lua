#!lua flags=allow-oom
-- All messages in the index of dead letters. KEYS: the prefix.
return redis.call('ZRANGE', P:sub(2, -2), 0, -1)
