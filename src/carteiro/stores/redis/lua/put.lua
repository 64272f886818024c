#!lua
-- Makes jobs claimable at their time. A known job does not change; one that waits for its due time gets the new one.
-- Nothing is put while memory is full.
-- KEYS: the prefix. ARGV: now or '', lists: ids, numbers of their seats (1, 2, …), ranks, parked until; kinds and tenants of
-- the seats; then the name of whose own workers are awake. Returns the number of new ones.
local now, new, has_moved = moment(ARGV[1]), 0, false
local ids, numbers, ranks, parks, kinds, tenants = unpack(cjson.decode(ARGV[2]))
local NEW_SEAT = cmsgpack.pack({0, 0, 0, 0, 0, 0})
local records, seats, was_put = {}, {}, {}

-- True if the job waits for its due time, and that is another one now.
local function is_misplaced(job, rank)
  if job.rank == rank or redis.call('HEXISTS', P .. ':leases', job.id) == 1 then
    return false
  end
  local waits_until = redis.call('ZSCORE', P .. ':delayed:' .. job.seat, job.id)
  return waits_until and tonumber(waits_until) == job.rank % STEP
end

local function put(id, seat, rank, parked_until)
  seat.first = math.min(seat.first, parked_until)
  add(records, id, stored_job(rank, seat.name))
  if parked_until > now then
    add(seat.delayed, parked_until, id)
  else
    add(seat.ready, rank, id)
  end
end

for i, kind in ipairs(kinds) do
  seats[i] = {name = kind .. '\t' .. tenants[i], first = FAR, ready = {}, delayed = {}}
end
for i, known in ipairs(values(P .. ':jobs', ids)) do
  local id, seat, rank = ids[i], seats[numbers[i]], ranks[i]
  if not known and not was_put[id] then
    new, was_put[id] = new + 1, true
    put(id, seat, rank, parks[i])
  elseif known and tonumber(known:match('^%d+')) ~= rank and not was_put[id] then
    was_put[id] = true
    local job = read_job(id, known)
    if is_misplaced(job, rank) then
      has_moved = true
      redis.call('ZREM', P .. ':delayed:' .. job.seat, id)
      put(id, seat, rank, parks[i])
    end
  end
end
many('HSET', P .. ':jobs', records)
for i, seat in ipairs(seats) do
  if seat.first < FAR then
    many('ZADD', P .. ':ready:' .. seat.name, seat.ready)
    many('ZADD', P .. ':delayed:' .. seat.name, seat.delayed)
    if redis.call('HSETNX', key('seats', kinds[i]), tenants[i], NEW_SEAT) == 1 then
      redis.call('SADD', P .. ':kinds', kinds[i])
      redis.call('ZADD', key('alarms', kinds[i]), seat.first, tenants[i])
    else
      touch(kinds[i], tenants[i], seat.first)
    end
  end
end
if new > 0 or has_moved then
  for i = 2, #kinds do
    kinds[1] = kinds[i] == kinds[1] and kinds[1] or ''
  end
  bell(kinds[1], ARGV[3])
end
return new
