#!lua flags=allow-oom
-- Makes jobs ready whose lease or hold has expired, or ends later than any can. KEYS: the prefix.
-- ARGV: now or '', limit. Returns the number.
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
