#!lua flags=allow-oom
-- The jobs of a tenant with a live lease. KEYS: the prefix. ARGV: now or '', tenant.
local now, busy = moment(ARGV[1]), {}
for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  local leased = key('leased', kind, ARGV[2])
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', leased, string.format('(%.0f', now), now + LONGEST)) do
    busy[#busy + 1] = id
  end
end
return busy
