-- Code that all operations share, put in front of each. The keys are described in ../keys.md
local P = KEYS[1]
local FAR = 9007199254740991  -- an alarm that never rings: the largest whole number that is exact here
local LONGEST = 3600000  -- no lease or hold is longer: one that ends later was made before the clock was set back
local STEP = 8796093022208  -- 2^43: a rank is the priority times this, plus the due time
local READY, DELAYED, LEASED = 0, 1, 2

local function key(name, kind, tenant)
  if tenant then
    return P .. ':' .. name .. ':' .. kind .. '\t' .. tenant
  end
  return P .. ':' .. name .. ':' .. kind
end

local function moment(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function unpacked_job(id, packed)
  local f = cmsgpack.unpack(packed)
  return {
    id = id, kind = f[1], tenant = f[2], rank = f[3], claims = f[4], claim = f[5], where = f[6], is_held = f[7] == 1
  }
end

local function load_job(id)
  local packed = redis.call('HGET', P .. ':jobs', id)
  return packed and unpacked_job(id, packed)
end

local function packed_job(job)
  local is_held = job.is_held and 1 or 0
  return cmsgpack.pack({job.kind, job.tenant, job.rank, job.claims, job.claim, job.where, is_held})
end

local function place_of(job)
  local name = job.where == READY and 'ready' or job.where == DELAYED and 'delayed' or 'leased'
  return key(name, job.kind, job.tenant)
end

-- Removes the job from its set.
local function lift(job)
  redis.call('ZREM', place_of(job), job.id)
  if job.where == LEASED then
    redis.call('ZREM', P .. ':leases', job.id)
  end
end

-- Parks the job without a claim, until it is due.
local function park(job, parked_until)
  job.claim, job.is_held, job.where = '', false, DELAYED
  redis.call('ZADD', key('delayed', job.kind, job.tenant), parked_until, job.id)
  redis.call('HSET', P .. ':jobs', job.id, packed_job(job))
end

-- Stores the job without a claim: ready, or parked until its time.
local function lay(job, parked_until, now)
  if parked_until > now then
    return park(job, parked_until)
  end
  job.claim, job.is_held, job.where = '', false, READY
  redis.call('ZADD', key('ready', job.kind, job.tenant), job.rank, job.id)
  redis.call('HSET', P .. ':jobs', job.id, packed_job(job))
end

-- Sets the seat's alarm to this time or earlier; only a claim moves a seat into or out of the ring.
local function touch(kind, tenant, at)
  if redis.call('HSETNX', key('seats', kind), tenant, cmsgpack.pack({0, 0, 0, 0, 0, 0})) == 1 then
    redis.call('SADD', P .. ':kinds', kind)
    redis.call('ZADD', key('alarms', kind), at, tenant)
  else
    redis.call('ZADD', key('alarms', kind), 'XX', 'LT', at, tenant)
  end
end

local function load_share(tenant)
  local packed = redis.call('HGET', P .. ':shares', tenant)
  local f = packed and cmsgpack.unpack(packed) or {1000000, -1, 0, 0, 0}
  return {tenant = tenant, stride = f[1], cap = f[2], interval_us = f[3], burst_us = f[4], is_held = f[5] == 1}
end

-- A slot of the tenant became free: wake its seats that wait at the cap. True if there is one.
local function free(tenant, now)
  if load_share(tenant).cap < 0 then
    return false
  end
  for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
    redis.call('ZADD', key('alarms', kind), 'XX', 'LT', now, tenant)
  end
  return true
end

local function is_live(parked_until, now)
  return parked_until > now and parked_until <= now + LONGEST
end

local function ring_member(tenant, last_turn)
  return string.format('%016.0f', last_turn) .. tenant
end

local function load_seat(kind, tenant)
  local packed = redis.call('HGET', key('seats', kind), tenant)
  if not packed then
    return nil
  end
  local f = cmsgpack.unpack(packed)
  return {
    kind = kind, tenant = tenant, vt = f[1], last_turn = f[2], processed = f[3], last_at = f[4], consecutive = f[5],
    since_turn = f[6]
  }
end

local function save_seat(seat)
  local packed = cmsgpack.pack({
    seat.vt, seat.last_turn, seat.processed, seat.last_at, seat.consecutive, seat.since_turn
  })
  redis.call('HSET', key('seats', seat.kind), seat.tenant, packed)
end

-- The draws from the send limit of a kind, oldest first: {time, jobs, claim} of each.
local function load_draws(kind)
  return cjson.decode(redis.call('HGET', key('clock', kind), 'draws') or '[]')
end

local function save_draws(kind, draws)
  redis.call('HSET', key('clock', kind), 'draws', #draws > 0 and cjson.encode(draws) or '[]')
end

local function bell()
  redis.call('PUBLISH', P .. ':bell', '')
end
