#!lua flags=allow-oom
-- All that the index of dead letters shows. KEYS: the prefix.
return redis.call('ZRANGE', P:sub(2, -2), 0, -1)
