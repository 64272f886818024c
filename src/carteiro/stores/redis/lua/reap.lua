#!lua flags=allow-oom
-- Readies jobs whose lease or hold ran out, or is further ahead than any can be. KEYS: the prefix.
-- ARGV: now or '', limit. Returns how many.
local now, limit = moment(ARGV[1]), tonumber(ARGV[2])
local lost = redis.call('ZRANGEBYSCORE', P .. ':leases', '-inf', now, 'LIMIT', 0, limit)
local impossible = redis.call('ZRANGEBYSCORE', P .. ':leases', '(' .. string.format('%.0f', now + LONGEST), '+inf',
  'LIMIT', 0, limit - #lost)
for _, id in ipairs(impossible) do
  lost[#lost + 1] = id
end
for _, id in ipairs(lost) do
  local job = load_job(id)
  lift(job)
  lay(job, now, now)
  touch(job.kind, job.tenant, now)
  free(job.tenant, now)
end
if #lost > 0 then
  bell()
end
return #lost
