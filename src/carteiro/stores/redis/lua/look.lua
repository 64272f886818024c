#!lua flags=allow-oom
-- How much memory is used, how much may be (0: no limit), and how much of it does not count towards that limit.
-- As a script that may write it is refused where a claim would be: by a replica, or a server that cannot keep what it
-- is told. KEYS: the prefix.
local told = redis.call('INFO', 'memory')
local function bytes(name)
  return tonumber(told:match('\r?\n' .. name .. ':(%d+)')) or 0
end
return {bytes('used_memory'), bytes('maxmemory'), bytes('mem_not_counted_for_evict')}
