#!lua flags=allow-oom
-- Removes a tenant and all its jobs. KEYS: the prefix. ARGV: tenant.
local tenant = ARGV[1]

local function remove(ids)
  many('HDEL', P .. ':jobs', ids)
  many('HDEL', P .. ':leases', ids)
  many('HDEL', P .. ':claims', ids)
end

for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  local seat = load_seat(kind, tenant)
  if seat then
    for _, name in ipairs({'ready', 'delayed'}) do
      remove(redis.call('ZRANGE', key(name, kind, tenant), 0, -1))
      redis.call('DEL', key(name, kind, tenant))
    end
    for _, name in ipairs(redis.call('ZRANGE', key('leased', kind, tenant), 0, -1)) do
      local ids = members(name)
      remove(ids)
      shrink({[name] = #ids})
    end
    redis.call('ZREM', key('ring', kind), ring_member(tenant, seat.last_turn))
    redis.call('ZREM', key('alarms', kind), tenant)
    redis.call('HDEL', key('seats', kind), tenant)
  end
end
redis.call('HDEL', P .. ':shares', tenant)
redis.call('HDEL', P .. ':tokens', tenant)
