#!lua flags=allow-oom
-- Records that every unfinished message was put since the queue got this token; a wiped queue has another token.
-- KEYS: the prefix. ARGV: epoch, token.
if redis.call('GET', P .. ':epoch') == ARGV[1] and redis.call('GET', P .. ':token') == ARGV[2] then
  redis.call('SET', P .. ':complete', ARGV[1])
end
