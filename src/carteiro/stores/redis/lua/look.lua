#!lua flags=allow-oom
-- Memory in use, its maximum (0: no limit), the part in use that does not count towards the maximum; connections rejected
-- and commands refused for lack of memory since its start.
-- As a script that may write, it is refused where a claim would be: by a replica, or a server that cannot write.
-- KEYS: the prefix.
local told = redis.call('INFO', 'memory') .. redis.call('INFO', 'stats') .. redis.call('INFO', 'errorstats')
local function number(name)
  return tonumber(told:match('\r?\n' .. name .. '(%d+)')) or 0
end
return {
  number('used_memory:'), number('maxmemory:'), number('mem_not_counted_for_evict:'),
  number('rejected_connections:'), number('errorstat_OOM:count='),
}
