#!lua flags=allow-oom
-- Leaves a note of the relay for its successor, or takes it; none is kept in a queue that is not complete.
-- KEYS: the prefix. ARGV: epoch, the note; '' takes it. Returns the note that was there; '' without one.
if redis.call('GET', P .. ':complete') ~= ARGV[1] then
  redis.call('DEL', P .. ':note')
end
local found = redis.call('GETDEL', P .. ':note') or ''
if ARGV[2] ~= '' and redis.call('GET', P .. ':complete') == ARGV[1] then
  redis.call('SET', P .. ':note', ARGV[2])
end
return found
