#!lua flags=allow-oom
-- Removes jobs from the queue, and their dead letters from the index. KEYS: the prefix. ARGV: now or '', then the ids.
local now, has_freed = moment(table.remove(ARGV, 1)), false
local packed = redis.call('HMGET', P .. ':jobs', unpack(ARGV))
local places, tenants, gone = {}, {}, {}
for i, id in ipairs(ARGV) do
  if packed[i] then
    local job = unpacked_job(id, packed[i])
    local place = place_of(job)
    places[place] = places[place] or {}
    table.insert(places[place], id)
    gone[#gone + 1] = id
    if job.where == LEASED then
      tenants[job.tenant] = true
    end
  end
end
for place, ids in pairs(places) do
  redis.call('ZREM', place, unpack(ids))
end
if #gone > 0 then
  redis.call('HDEL', P .. ':jobs', unpack(gone))
  redis.call('ZREM', P .. ':leases', unpack(gone))
end
redis.call('ZREM', P:sub(2, -2), unpack(ARGV))
for tenant in pairs(tenants) do
  has_freed = free(tenant, now) or has_freed
end
if has_freed then
  bell()
end
