#!lua flags=allow-oom
-- The place of a job, the standing of its tenant, and the send limit of its kind. KEYS: the prefix. ARGV: now or '', id.
-- Returns {now}, or {now, parked until or -1, 1 if claimed, claims, alarm or -1, in flight, count or -1, per_ms, draws}.
local now = moment(ARGV[1])
local job = load_job(ARGV[2])
if not job then
  return {now}
end
local parked_until = -1
if job.where == DELAYED then
  parked_until = tonumber(redis.call('ZSCORE', key('delayed', job.kind, job.tenant), job.id))
elseif job.where == LEASED then
  parked_until = tonumber(redis.call('ZSCORE', P .. ':leases', job.id))
end
local in_flight = 0
for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  local leased = key('leased', kind, job.tenant)
  in_flight = in_flight + redis.call('ZCOUNT', leased, string.format('(%.0f', now), now + LONGEST)
end
local alarm = tonumber(redis.call('ZSCORE', key('alarms', job.kind), job.tenant) or -1)
local limit = redis.call('HMGET', key('clock', job.kind), 'count', 'per_ms', 'draws')
return {
  now, parked_until, job.where == LEASED and 1 or 0, job.claims, alarm, in_flight,
  tonumber(limit[1] or -1), tonumber(limit[2] or 0), limit[3] or '[]'
}
