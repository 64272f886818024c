#!lua
-- Makes jobs claimable at their time. A known job does not change; one that waits for its due time gets the new one.
-- Nothing is put while memory is full.
-- KEYS: the prefix. ARGV: now or '', a list with id, kind, tenant, rank, parked until of each. Returns the number of new ones.
local now, new = moment(ARGV[1]), 0
for _, entry in ipairs(cjson.decode(ARGV[2])) do
  local id, kind, tenant, rank, parked_until = unpack(entry)
  local job = load_job(id)
  local is_misplaced = false
  if job and job.where == DELAYED and job.rank ~= rank then
    local waits_until = tonumber(redis.call('ZSCORE', key('delayed', job.kind, job.tenant), id))
    is_misplaced = waits_until == job.rank % STEP
  end
  if is_misplaced then
    lift(job)
    job.rank = rank
  elseif not job then
    new = new + 1
    job = {id = id, kind = kind, tenant = tenant, rank = rank, claims = 0}
    is_misplaced = true
  end
  if is_misplaced then
    lay(job, parked_until, now)
    touch(kind, tenant, parked_until)
  end
end
bell()
return new
