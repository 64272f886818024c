#!lua flags=allow-oom
-- The next jobs of a tenant, and its claimed ones. KEYS: the prefix. ARGV: now or '', kind, tenant, limit of each sort.
-- Returns {1 if claimed, rank, id} of each.
local now, kind, tenant, limit = moment(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local found = {}

local function find(name, is_claimed, most)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key(name, kind, tenant), '-inf', most, 'LIMIT', 0, limit)) do
    found[#found + 1] = {is_claimed, load_job(id).rank, id}
  end
end

find('leased', 1, '+inf')
find('ready', 0, '+inf')
find('delayed', 0, now)
return found
