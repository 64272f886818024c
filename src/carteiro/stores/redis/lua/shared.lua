-- Code that all operations share, put in front of each. The keys are described in ../keys.md
local P = KEYS[1]
local FAR = 9007199254740991  -- an alarm that never rings: the largest whole number that is exact here
local LONGEST = 3600000  -- no lease or hold is longer: one that ends later was made before the clock was set back
local STEP = 8796093022208  -- 2^43: a rank is the priority times this, plus the due time
local MOST_WORDS = 1000  -- of one command: more do not fit on the stack
local LONG = string.rep('-', 65)  -- longer than hash-max-listpack-value

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

local function as_text(number)
  return string.format('%.0f', number)
end

-- One command with many words, in pieces.
local function many(command, place, words)
  for first = 1, #words, MOST_WORDS do
    redis.call(command, place, unpack(words, first, math.min(first + MOST_WORDS - 1, #words)))
  end
end

local function add(words, one, other)
  words[#words + 1] = one
  words[#words + 1] = other
end

-- The values of these fields of a hash, false for those that it does not have.
local function values(place, fields)
  if #fields <= MOST_WORDS then
    return #fields > 0 and redis.call('HMGET', place, unpack(fields)) or {}
  end
  local found = {}
  for first = 1, #fields, MOST_WORDS do
    local last = math.min(first + MOST_WORDS - 1, #fields)
    for i, value in ipairs(redis.call('HMGET', place, unpack(fields, first, last))) do
      found[first + i - 1] = value
    end
  end
  return found
end

-- Bytes, whatever the server's locale says.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    if a:byte(i) ~= b:byte(i) then
      return a:byte(i) < b:byte(i)
    end
  end
  return #a < #b
end

-- --- jobs: {id, rank, seat}; a seat is named by kind and tenant

local function read_job(id, stored)
  local rank, seat = stored:match('^(%d+) (.*)$')
  return {id = id, rank = tonumber(rank), seat = seat}
end

local function load_job(id)
  local stored = redis.call('HGET', P .. ':jobs', id)
  return stored and read_job(id, stored)
end

local function stored_job(rank, seat)
  return as_text(rank) .. ' ' .. seat
end

local function split(seat)
  return seat:match('^(.-)\t(.*)$')
end

-- Lays a job that nobody has claimed: ready, or delayed until its time.
local function lay(job, parked_until, now)
  if parked_until > now then
    redis.call('ZADD', P .. ':delayed:' .. job.seat, parked_until, job.id)
  else
    redis.call('ZADD', P .. ':ready:' .. job.seat, job.rank, job.id)
  end
end

-- --- leases, by group: the jobs of one seat in one claim, with a common end

local groups = {}

local function group_of(name)
  if not groups[name] then
    local claim, seat = name:match('^(.-)\t.-\t(.*)$')
    local kind, tenant = split(seat)
    groups[name] = {name = name, claim = claim, seat = seat, kind = kind, tenant = tenant}
  end
  return groups[name]
end

-- The jobs that are left in a group: its list is written once, and what left it is known by its lease.
local function members(name)
  local ids, left = cmsgpack.unpack(redis.call('HGET', P .. ':groups', name)), {}
  for i, holder in ipairs(values(P .. ':leases', ids)) do
    if holder == name then
      left[#left + 1] = ids[i]
    end
  end
  return left
end

-- Jobs have left their groups, by name of the group a number; the last one of a group removes it.
local function shrink(counts)
  local names, smaller, gone = {}, {}, {}
  for name in pairs(counts) do
    names[#names + 1] = name
  end
  for i, left in ipairs(values(P .. ':left', names)) do
    local name = names[i]
    if tonumber(left) > counts[name] then
      add(smaller, name, tonumber(left) - counts[name])
    else
      gone[#gone + 1] = name
      redis.call('ZREM', P .. ':leased:' .. group_of(name).seat, name)
    end
  end
  many('HSET', P .. ':left', smaller)
  many('HDEL', P .. ':left', gone)
  many('HDEL', P .. ':groups', gone)
  many('HDEL', P .. ':held', gone)
  many('ZREM', P .. ':ends', gone)
end

-- Stores new groups: {name, ids, end} of each.
local function store_groups(new)
  if #new == 0 then
    return
  end
  -- A small hash of short values is a list, which the server searches from the start for each field: a long value for a
  -- moment makes it a table.
  local lists, counts, leases, ends, n = {}, {}, {'', LONG}, {}, 2
  for _, group in ipairs(new) do
    local name, ids, ends_at = unpack(group)
    add(lists, name, cmsgpack.pack(ids))
    add(counts, name, #ids)
    add(ends, ends_at, name)
    for _, id in ipairs(ids) do
      leases[n + 1], leases[n + 2], n = id, name, n + 2
    end
    redis.call('ZADD', P .. ':leased:' .. group_of(name).seat, ends_at, name)
  end
  many('HSET', P .. ':groups', lists)
  many('HSET', P .. ':left', counts)
  many('HSET', P .. ':leases', leases)
  redis.call('HDEL', P .. ':leases', '')
  many('ZADD', P .. ':ends', ends)
end

local function end_of(name)
  return tonumber(redis.call('ZSCORE', P .. ':ends', name))
end

-- The job is not leased any more.
local function unlease(id, name)
  redis.call('HDEL', P .. ':leases', id)
  shrink({[name] = 1})
end

local function sum_of(names)
  local jobs = 0
  for _, left in ipairs(values(P .. ':left', names)) do
    jobs = jobs + tonumber(left)
  end
  return jobs
end

local function live_groups(seat, now)
  return redis.call('ZRANGEBYSCORE', P .. ':leased:' .. seat, '(' .. as_text(now), now + LONGEST)
end

-- The number of jobs of a seat that workers have now, and of those that they have or had.
local function in_flight(seat, now)
  return sum_of(live_groups(seat, now))
end

local function all_leased(seat)
  return sum_of(redis.call('ZRANGE', P .. ':leased:' .. seat, 0, -1))
end

local function is_live(parked_until, now)
  return parked_until > now and parked_until <= now + LONGEST
end

-- The first jobs of these groups, by the end of their lease, then id: {end, id, group}. Words: name, end of each.
local function first_of(words, most)
  local found = {}
  for i = 1, #words, 2 do
    for _, id in ipairs(members(words[i])) do
      found[#found + 1] = {tonumber(words[i + 1]), id, words[i]}
    end
  end
  table.sort(found, function(a, b)
    return a[1] < b[1] or (a[1] == b[1] and is_before(a[2], b[2]))
  end)
  for i = #found, most + 1, -1 do
    found[i] = nil
  end
  return found
end

-- The first jobs of a set of groups whose lease has expired, or ends later than any can.
local function expired(place, now, most)
  local function between(least, greatest, count)
    if count <= 0 then
      return {}
    end
    local words = redis.call('ZRANGEBYSCORE', place, least, greatest, 'WITHSCORES', 'LIMIT', 0, count)
    if #words == 2 * count then  -- others may end at the same time as the last one
      words = redis.call('ZRANGEBYSCORE', place, least, words[#words], 'WITHSCORES')
    end
    return first_of(words, count)
  end
  local found = between('-inf', now, most)
  for _, one in ipairs(between('(' .. as_text(now + LONGEST), '+inf', most - #found)) do
    found[#found + 1] = one
  end
  return found
end

-- The lease of a job has expired: its claim counts, and it is ready.
local function lose(id, name)
  local job = load_job(id)
  unlease(id, name)
  redis.call('HINCRBY', P .. ':claims', id, 1)
  redis.call('ZADD', P .. ':ready:' .. job.seat, job.rank, id)
end

-- --- seats

-- Sets the seat's alarm to this time or earlier; only a claim moves a seat into or out of the ring.
local function touch(kind, tenant, at)
  redis.call('ZADD', key('alarms', kind), 'XX', 'LT', at, tenant)
end

local function read_share(tenant, packed)
  local f = packed and cmsgpack.unpack(packed) or {1000000, -1, 0, 0, 0}
  return {tenant = tenant, stride = f[1], cap = f[2], interval_us = f[3], burst_us = f[4], is_held = f[5] == 1}
end

local function load_share(tenant)
  return read_share(tenant, redis.call('HGET', P .. ':shares', tenant))
end

-- Slots of these tenants became free: wake those of their seats that wait at a cap. True if there is a cap.
local function free(tenants, now)
  local has_cap = false
  for i, packed in ipairs(values(P .. ':shares', tenants)) do
    if read_share(tenants[i], packed).cap >= 0 then
      has_cap = true
      for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
        touch(kind, tenants[i], now)
      end
    end
  end
  return has_cap
end

local function ring_member(tenant, last_turn)
  return string.format('%016.0f', last_turn) .. tenant
end

local function read_seat(kind, tenant, packed)
  local f = cmsgpack.unpack(packed)
  return {
    kind = kind, tenant = tenant, vt = f[1], last_turn = f[2], processed = f[3], last_at = f[4], consecutive = f[5],
    since_turn = f[6]
  }
end

local function load_seat(kind, tenant)
  local packed = redis.call('HGET', key('seats', kind), tenant)
  return packed and read_seat(kind, tenant, packed) or nil
end

local function packed_seat(seat)
  return cmsgpack.pack({
    seat.vt, seat.last_turn, seat.processed, seat.last_at, seat.consecutive, seat.since_turn
  })
end

local function save_seat(seat)
  redis.call('HSET', key('seats', seat.kind), seat.tenant, packed_seat(seat))
end

-- The draws from the send limit of a kind, oldest first: {time, jobs, claim} of each.
local function load_draws(kind)
  return cjson.decode(redis.call('HGET', key('clock', kind), 'draws') or '[]')
end

local function save_draws(kind, draws)
  redis.call('HSET', key('clock', kind), 'draws', #draws > 0 and cjson.encode(draws) or '[]')
end

-- Wakes those who wait for a kind, without one: everybody. Who has woken its own already gives its name.
local function bell(kind, by)
  redis.call('PUBLISH', P .. ':bell', (kind or '') .. '\t' .. (by or ''))
end
