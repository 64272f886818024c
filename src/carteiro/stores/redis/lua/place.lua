#!lua flags=allow-oom
-- The place of a job, the standing of its tenant, and the send limit of its kind. KEYS: the prefix. ARGV: now or '', id.
-- Returns {now}, or {now, parked until or -1, 1 if claimed, claims, alarm or -1, in flight, count or -1, per_ms, draws}.
local now = moment(ARGV[1])
local job = load_job(ARGV[2])
if not job then
  return {now}
end
local kind, tenant = split(job.seat)
local name = redis.call('HGET', P .. ':leases', job.id)
local parked_until = name and end_of(name) or tonumber(redis.call('ZSCORE', P .. ':delayed:' .. job.seat, job.id) or -1)
local claims = tonumber(redis.call('HGET', P .. ':claims', job.id) or 0) + (name and 1 or 0)
local busy = 0
for _, each in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  busy = busy + in_flight(each .. '\t' .. tenant, now)
end
local alarm = tonumber(redis.call('ZSCORE', key('alarms', kind), tenant) or -1)
local limit = redis.call('HMGET', key('clock', kind), 'count', 'per_ms', 'draws')
return {
  now, parked_until, name and 1 or 0, claims, alarm, busy,
  tonumber(limit[1] or -1), tonumber(limit[2] or 0), limit[3] or '[]'
}
