#!lua flags=allow-oom
-- Extends valid claims: their end moves to the given number of milliseconds from now.
-- KEYS: the prefix. ARGV: now or '', epoch, how, a list with job, claim, milliseconds of each. How: 'ask' changes nothing,
-- 'extend' never shortens, 'hold' sets each end once, 'unhold' undoes that.
-- Returns now, then for each the end before, 0 if another claim has the job; {-1} alone if the queue was not founded
-- under this epoch.
if redis.call('GET', P .. ':epoch') ~= ARGV[2] then
  return {-1}
end
local now, how, ids = moment(ARGV[1]), ARGV[3], {}
local ends = {now}

local function move(job, ends_at)
  redis.call('ZADD', key('leased', job.kind, job.tenant), ends_at, job.id)
  redis.call('ZADD', P .. ':leases', ends_at, job.id)
  touch(job.kind, job.tenant, ends_at)
  if how ~= 'extend' then
    job.is_held = how == 'hold'
    redis.call('HSET', P .. ':jobs', job.id, packed_job(job))
  end
end

local function moved(job, ends_at)
  if how == 'ask' then
    return 1
  end
  local before = tonumber(redis.call('ZSCORE', P .. ':leases', job.id))
  if (how == 'hold' and not job.is_held) or how == 'unhold' or (how == 'extend' and ends_at > before) then
    move(job, ends_at)
  end
  return before
end

local leases = cjson.decode(ARGV[4])
for i, lease in ipairs(leases) do
  ids[i] = lease[1]
end
local packed = #ids > 0 and redis.call('HMGET', P .. ':jobs', unpack(ids)) or {}
for i, id in ipairs(ids) do
  local job = packed[i] and unpacked_job(id, packed[i])
  local is_standing = job and job.where == LEASED and job.claim == leases[i][2]
  ends[i + 1] = is_standing and moved(job, now + leases[i][3]) or 0
end
return ends
