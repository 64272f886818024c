#!lua flags=allow-oom
-- The next jobs of a tenant, and its claimed ones. KEYS: the prefix. ARGV: now or '', kind, tenant, limit of each sort.
-- Returns {1 if claimed, rank, id} of each.
local now, seat, limit = moment(ARGV[1]), ARGV[2] .. '\t' .. ARGV[3], tonumber(ARGV[4])
local found = {}

local function add(is_claimed, id)
  found[#found + 1] = {is_claimed, load_job(id).rank, id}
end

for _, one in ipairs(first_of(redis.call('ZRANGE', P .. ':leased:' .. seat, 0, -1, 'WITHSCORES'), limit)) do
  add(1, one[2])
end
for _, id in ipairs(redis.call('ZRANGE', P .. ':ready:' .. seat, 0, limit - 1)) do
  add(0, id)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. ':delayed:' .. seat, '-inf', now, 'LIMIT', 0, limit)) do
  add(0, id)
end
return found
