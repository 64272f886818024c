#!lua flags=allow-oom
-- Follows the ledger. KEYS: the prefix. ARGV: now or '', three lists:
-- ids of jobs to be removed, with their dead letters in the index;
-- id, claim, due at, parked until of jobs to be parked, without a claim and without counting one, except those that
-- another claim has (due jobs are parked, too, so that the same call again changes nothing);
-- expiry, id of dead letters to be shown.
local now, has_freed = moment(ARGV[1]), false
local over, again, dead = unpack(cjson.decode(ARGV[2]))
local index = P:sub(2, -2)

local function lift(job)
  if redis.call('ZREM', P .. ':ready:' .. job.seat, job.id) == 0 then
    redis.call('ZREM', P .. ':delayed:' .. job.seat, job.id)
  end
end

local function remove(ids)
  local counts, tenants, others, seen = {}, {}, {}, {}
  for i, name in ipairs(values(P .. ':leases', ids)) do
    if name then
      counts[name] = (counts[name] or 0) + (seen[ids[i]] and 0 or 1)
      seen[ids[i]] = true
    else
      others[#others + 1] = ids[i]
    end
  end
  for i, stored in ipairs(values(P .. ':jobs', others)) do
    if stored then
      lift(read_job(others[i], stored))
    end
  end
  many('HDEL', P .. ':jobs', ids)
  many('HDEL', P .. ':leases', ids)
  for command, place in pairs({HDEL = P .. ':claims', ZREM = index}) do  -- usually both are empty
    if redis.call('EXISTS', place) == 1 then
      many(command, place, ids)
    end
  end
  for name in pairs(counts) do
    tenants[#tenants + 1] = group_of(name).tenant
  end
  shrink(counts)
  has_freed = free(tenants, now)
end

local function park(id, claim, due_at, parked_until)
  local job, name = load_job(id), redis.call('HGET', P .. ':leases', id)
  if not job or (name and group_of(name).claim ~= claim) then
    return
  end
  local kind, tenant = split(job.seat)
  if name then
    unlease(id, name)
    free({tenant}, now)
  else
    lift(job)
  end
  redis.call('HSET', P .. ':jobs', id, stored_job(job.rank - job.rank % STEP + due_at, job.seat))
  redis.call('HDEL', P .. ':claims', id)
  redis.call('ZADD', P .. ':delayed:' .. job.seat, parked_until, id)
  touch(kind, tenant, parked_until)
end

remove(over)
for _, delay in ipairs(again) do
  park(unpack(delay))
end
for _, letter in ipairs(dead) do
  redis.call('ZADD', index, letter[1], letter[2])
end
if has_freed or #again > 0 then
  bell()
end
