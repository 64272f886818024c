#!lua flags=allow-oom
-- Follows the ledger. KEYS: the prefix. ARGV: now or '', three lists:
-- ids of jobs to be removed, with their dead letters in the index;
-- id, claim, due at, parked until of jobs to be parked, without a claim and without counting one, except those that
-- another claim has (due jobs are parked, too, so that the same call again changes nothing);
-- expiry, id of dead letters to be shown.
local now, has_freed = moment(ARGV[1]), false
local over, again, dead = unpack(cjson.decode(ARGV[2]))

local function remove(ids)
  local packed = redis.call('HMGET', P .. ':jobs', unpack(ids))
  local places, tenants, gone = {}, {}, {}
  for i, id in ipairs(ids) do
    if packed[i] then
      local job = unpacked_job(id, packed[i])
      local place = place_of(job)
      places[place] = places[place] or {}
      table.insert(places[place], id)
      gone[#gone + 1] = id
      if job.where == LEASED then
        tenants[job.tenant] = true
      end
    end
  end
  for place, its in pairs(places) do
    redis.call('ZREM', place, unpack(its))
  end
  if #gone > 0 then
    redis.call('HDEL', P .. ':jobs', unpack(gone))
    redis.call('ZREM', P .. ':leases', unpack(gone))
  end
  redis.call('ZREM', P:sub(2, -2), unpack(ids))
  for tenant in pairs(tenants) do
    has_freed = free(tenant, now) or has_freed
  end
end

if #over > 0 then
  remove(over)
end
for _, delay in ipairs(again) do
  local id, claim, due_at, parked_until = unpack(delay)
  local job = load_job(id)
  if job and (job.where ~= LEASED or job.claim == claim) then
    lift(job)
    if job.where == LEASED then
      free(job.tenant, now)
    end
    job.rank, job.claims = job.rank - job.rank % STEP + due_at, 0
    park(job, parked_until)
    touch(job.kind, job.tenant, parked_until)
  end
end
for _, letter in ipairs(dead) do
  redis.call('ZADD', P:sub(2, -2), letter[1], letter[2])
end
if has_freed or #again > 0 then
  bell()
end
