#!lua flags=allow-oom
-- The jobs of a tenant with a live lease. KEYS: the prefix. ARGV: now or '', tenant.
local now, busy = moment(ARGV[1]), {}
for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  for _, name in ipairs(live_groups(kind .. '\t' .. ARGV[2], now)) do
    for _, id in ipairs(members(name)) do
      busy[#busy + 1] = id
    end
  end
end
return busy
