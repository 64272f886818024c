#!lua
-- Makes jobs claimable at their time. A known job does not change; one that waits for its due time gets the new one.
-- Nothing is put while memory is full.
-- KEYS: the prefix. ARGV: now or '', a list with id, kind, tenant, rank, parked until of each. Returns the number of new ones.
local now, new, entries = moment(ARGV[1]), 0, cjson.decode(ARGV[2])
local NEW_SEAT = cmsgpack.pack({0, 0, 0, 0, 0, 0})
local ids, records, ready, delayed, first, seats = {}, {}, {}, {}, {}, {}

-- True if the job waits for its due time, and that is another one now.
local function is_misplaced(job, rank)
  if job.rank == rank or redis.call('HEXISTS', P .. ':leases', job.id) == 1 then
    return false
  end
  local waits_until = redis.call('ZSCORE', P .. ':delayed:' .. job.seat, job.id)
  return waits_until and tonumber(waits_until) == job.rank % STEP
end

local function put(id, kind, tenant, rank, parked_until)
  local seat = kind .. '\t' .. tenant
  if not first[seat] then
    seats[#seats + 1] = {seat, kind, tenant}
    ready[seat], delayed[seat] = {}, {}
  end
  first[seat] = math.min(first[seat] or FAR, parked_until)
  add(records, id, stored_job(rank, seat))
  if parked_until > now then
    add(delayed[seat], parked_until, id)
  else
    add(ready[seat], rank, id)
  end
end

for i, entry in ipairs(entries) do
  ids[i] = entry[1]
end
local was_put = {}
for i, known in ipairs(values(P .. ':jobs', ids)) do
  local id, kind, tenant, rank, parked_until = unpack(entries[i])
  local job = known and read_job(id, known)
  if was_put[id] then
    job = nil
  elseif not job then
    new = new + 1
    put(id, kind, tenant, rank, parked_until)
  elseif is_misplaced(job, rank) then
    redis.call('ZREM', P .. ':delayed:' .. job.seat, id)
    put(id, kind, tenant, rank, parked_until)
  end
  was_put[id] = true
end
many('HSET', P .. ':jobs', records)
for _, seat in ipairs(seats) do
  local name, kind, tenant = unpack(seat)
  many('ZADD', P .. ':ready:' .. name, ready[name])
  many('ZADD', P .. ':delayed:' .. name, delayed[name])
  if redis.call('HSETNX', key('seats', kind), tenant, NEW_SEAT) == 1 then
    redis.call('SADD', P .. ':kinds', kind)
    redis.call('ZADD', key('alarms', kind), first[name], tenant)
  else
    touch(kind, tenant, first[name])
  end
end
bell()
return new
