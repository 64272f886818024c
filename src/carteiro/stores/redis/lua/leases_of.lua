#!lua flags=allow-oom
-- All leases of claims. KEYS: the prefix. ARGV: the claims. Returns job, claim of each.
local wanted, leases = {}, {}
for _, claim in ipairs(ARGV) do
  wanted[claim] = true
end
for _, name in ipairs(redis.call('ZRANGE', P .. ':ends', 0, -1)) do
  local claim = group_of(name).claim
  if wanted[claim] then
    for _, id in ipairs(members(name)) do
      leases[#leases + 1] = id
      leases[#leases + 1] = claim
    end
  end
end
return leases
