#!lua flags=allow-oom
-- Memory in use, its maximum (0: no limit), and the part in use that does not count towards the maximum.
-- As a script that may write, it is refused where a claim would be: by a replica, or a server that cannot write.
-- KEYS: the prefix.
local told = redis.call('INFO', 'memory')
local function bytes(name)
  return tonumber(told:match('\r?\n' .. name .. ':(%d+)')) or 0
end
return {bytes('used_memory'), bytes('maxmemory'), bytes('mem_not_counted_for_evict')}
