#!lua flags=allow-oom
-- Removes a tenant and all its jobs. KEYS: the prefix. ARGV: tenant.
local tenant = ARGV[1]
for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  local seat = load_seat(kind, tenant)
  if seat then
    for _, name in ipairs({'ready', 'delayed', 'leased'}) do
      local place = key(name, kind, tenant)
      for _, id in ipairs(redis.call('ZRANGE', place, 0, -1)) do
        redis.call('HDEL', P .. ':jobs', id)
        redis.call('ZREM', P .. ':leases', id)
      end
      redis.call('DEL', place)
    end
    redis.call('ZREM', key('ring', kind), ring_member(tenant, seat.last_turn))
    redis.call('ZREM', key('alarms', kind), tenant)
    redis.call('HDEL', key('seats', kind), tenant)
  end
end
redis.call('HDEL', P .. ':shares', tenant)
redis.call('HDEL', P .. ':tokens', tenant)
