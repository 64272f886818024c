#!lua flags=allow-oom
-- Queue depth, by kind: reads seat by seat and priority by priority, without the backlog between them.
-- KEYS: the prefix. ARGV: now or ''. Returns now, then for each kind: kind, jobs, in flight, time since which the
-- oldest one is claimable or -1.
local now = moment(ARGV[1])
local rows = {now}

local function first(place, least)
  local found = redis.call('ZRANGEBYSCORE', place, least, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return found[2] and tonumber(found[2])
end

for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
  local jobs, busy, since = 0, 0, FAR
  local tenants = redis.call('HKEYS', key('seats', kind))
  for _, tenant in ipairs(tenants) do
    local ready, delayed = key('ready', kind, tenant), key('delayed', kind, tenant)
    local leased, name = key('leased', kind, tenant), kind .. '\t' .. tenant
    local ready_jobs = redis.call('ZCARD', ready)
    jobs = jobs + ready_jobs + redis.call('ZCARD', delayed) + all_leased(name)
    busy = busy + in_flight(name, now)
    local rank = ready_jobs > 0 and first(ready, '-inf')
    while rank do
      local due_at = rank % STEP
      since = math.min(since, due_at, now)
      rank = first(ready, string.format('%.0f', rank - due_at + STEP))
    end
    for _, place in ipairs({delayed, leased}) do
      local parked_until = first(place, '-inf')
      if parked_until and parked_until <= now then
        since = math.min(since, parked_until)
      end
    end
  end
  if #tenants > 0 then
    rows[#rows + 1] = {kind, jobs, busy, since == FAR and -1 or since}
  end
end
return rows
