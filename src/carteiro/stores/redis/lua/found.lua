#!lua flags=allow-oom
-- The queue knows every tenant and limit now: claims may begin under this epoch. KEYS: the prefix.
-- ARGV: epoch, a token for a queue that has none. Returns the token that it is known by until it is wiped.
redis.call('SET', P .. ':epoch', ARGV[1])
redis.call('SET', P .. ':token', ARGV[2], 'NX')
bell()
return redis.call('GET', P .. ':token')
