#!lua flags=allow-oom
-- Gives claimed jobs back as if they had never been claimed, tokens included.
-- KEYS: the prefix. ARGV: now or '', the wait in milliseconds, a list with job, claim of each.
local now = moment(ARGV[1])
local parked_until = now + tonumber(ARGV[2])

local function undraw(kind, claim)
  if redis.call('HEXISTS', key('clock', kind), 'count') == 0 then
    return
  end
  local left = {}
  for _, draw in ipairs(load_draws(kind)) do
    draw[2] = draw[2] - (draw[3] == claim and 1 or 0)
    if draw[2] > 0 then
      left[#left + 1] = draw
    end
  end
  save_draws(kind, left)
end

for _, lease in ipairs(cjson.decode(ARGV[3])) do
  local job, claim = load_job(lease[1]), lease[2]
  if job and job.where == LEASED and job.claim == claim then
    lift(job)
    job.claims = math.max(0, job.claims - 1)
    lay(job, parked_until, now)
    touch(job.kind, job.tenant, parked_until)
    local share = load_share(job.tenant)
    if share.interval_us > 0 then
      redis.call('HINCRBY', P .. ':tokens', job.tenant, -share.interval_us)
    end
    undraw(job.kind, claim)
    free(job.tenant, now)
  end
end
bell()
