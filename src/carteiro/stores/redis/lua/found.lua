#!lua flags=allow-oom
-- Allows claims under this epoch, as all tenants and limits are set now. KEYS: the prefix.
-- ARGV: epoch, a token for a queue that has none. Returns the token that identifies the queue until it is wiped.
redis.call('SET', P .. ':epoch', ARGV[1])
redis.call('SET', P .. ':token', ARGV[2], 'NX')
bell()
return redis.call('GET', P .. ':token')
