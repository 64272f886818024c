#!lua flags=allow-oom
-- All leases of claims. KEYS: the prefix. ARGV: the claims. Returns job, claim of each.
local PAGE = 500  -- more does not fit on the stack
local wanted, leases = {}, {}
for _, claim in ipairs(ARGV) do
  wanted[claim] = true
end
local ids = redis.call('ZRANGE', P .. ':leases', 0, -1)
for first = 1, #ids, PAGE do
  local last = math.min(first + PAGE - 1, #ids)
  for i, packed in ipairs(redis.call('HMGET', P .. ':jobs', unpack(ids, first, last))) do
    local job = unpacked_job(ids[first + i - 1], packed)
    if wanted[job.claim] then
      leases[#leases + 1] = job.id
      leases[#leases + 1] = job.claim
    end
  end
end
return leases
