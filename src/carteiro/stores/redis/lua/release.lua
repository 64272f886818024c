#!lua flags=allow-oom
-- Gives claimed jobs back as if they had never been claimed, tokens included.
-- KEYS: the prefix. ARGV: now or '', the wait in milliseconds, then job, claim of each.
local now = moment(ARGV[1])
local parked_until = now + tonumber(ARGV[2])
for i = 3, #ARGV, 2 do
  local job = load_job(ARGV[i])
  if job and job.where == LEASED and job.claim == ARGV[i + 1] then
    lift(job)
    job.claims = math.max(0, job.claims - 1)
    lay(job, parked_until, now)
    touch(job.kind, job.tenant, parked_until)
    local share = load_share(job.tenant)
    if share.interval_us > 0 then
      redis.call('HINCRBY', P .. ':tokens', job.tenant, -share.interval_us)
    end
    local interval_us = redis.call('HGET', key('clock', job.kind), 'interval_us')
    if interval_us then
      redis.call('HINCRBY', key('clock', job.kind), 'next_us', -tonumber(interval_us))
    end
    free(job.tenant, now)
  end
end
bell()
