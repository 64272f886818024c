#!lua flags=allow-oom
-- Sets the shares of tenants; they apply to waiting jobs at once: virtual time is rescaled, a paused or disabled tenant
-- leaves the ring, any other is looked at again.
-- KEYS: the prefix. ARGV: now or '', then tenant, stride, cap or -1, interval_us or 0, burst_us, 1 if paused or disabled, of each.
local now = moment(ARGV[1])

-- floor(a * new / old), exact although the product is not: the other factor is split.
local function scaled(a, new, old)
  local whole, rest = math.floor(a / old), a % old
  local high, low = math.floor(new / 65536), new % 65536
  local carried = math.floor(rest * high / old)
  local left = (rest * high) % old
  return whole * new + carried * 65536 + math.floor((left * 65536 + rest * low) / old)
end

local function reseat(kind, tenant, old, new, is_held)
  local seat = load_seat(kind, tenant)
  if not seat then
    return
  end
  local ring = key('ring', kind)
  local member = ring_member(tenant, seat.last_turn)
  local is_in_ring = redis.call('ZSCORE', ring, member)
  local v = tonumber(redis.call('HGET', key('clock', kind), 'v') or 0)
  if seat.vt > v and old ~= new then
    seat.vt = v + scaled(seat.vt - v, new, old)
    save_seat(seat)
  end
  if is_held then
    redis.call('ZREM', ring, member)
    redis.call('ZADD', key('alarms', kind), FAR, tenant)
  elseif is_in_ring then
    redis.call('ZADD', ring, seat.vt, member)
  else
    redis.call('ZADD', key('alarms', kind), 'LT', now, tenant)
  end
end

local kinds = redis.call('SMEMBERS', P .. ':kinds')
for i = 2, #ARGV, 6 do
  local tenant, stride, interval_us = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 3])
  local before, is_held = load_share(tenant), ARGV[i + 5] == '1'
  if before.interval_us ~= interval_us then
    redis.call('HDEL', P .. ':tokens', tenant)
  end
  local packed = cmsgpack.pack({stride, tonumber(ARGV[i + 2]), interval_us, tonumber(ARGV[i + 4]), is_held and 1 or 0})
  redis.call('HSET', P .. ':shares', tenant, packed)
  for _, kind in ipairs(kinds) do
    reseat(kind, tenant, before.stride, stride, is_held)
  end
end
bell()
