#!lua flags=allow-oom
-- The place of a job, the standing of its tenant, the send limit of its kind, and the jobs before it: ready ones and parked
-- ones, and the first time of any. KEYS: the prefix. ARGV: now or '', id.
-- Returns {now}, or {now, parked until or -1, 1 if claimed, claims, alarm or -1, in flight, count or -1, per_ms, draws,
-- ready, parked, since or -1}.
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
local ready, delayed = P .. ':ready:' .. job.seat, P .. ':delayed:' .. job.seat
local ahead = redis.call('ZRANK', ready, job.id) or redis.call('ZCOUNT', ready, '-inf', '(' .. as_text(job.rank))
local since, rank = FAR, tonumber(redis.call('ZRANGE', ready, 0, 0, 'WITHSCORES')[2])
while rank and rank <= job.rank do  -- the first one of each priority
  since = math.min(since, rank % STEP)
  local later = redis.call('ZRANGEBYSCORE', ready, as_text(rank - rank % STEP + STEP), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  rank = later[2] and tonumber(later[2])
end
since = math.min(since, tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2] or FAR))
return {
  now, parked_until, name and 1 or 0, claims, alarm, busy,
  tonumber(limit[1] or -1), tonumber(limit[2] or 0), limit[3] or '[]',
  ahead, redis.call('ZRANK', delayed, job.id) or redis.call('ZCOUNT', delayed, '-inf', '(' .. as_text(job.rank % STEP)),
  since == FAR and -1 or since
}
