#!lua flags=allow-oom
-- Leases ready jobs, tenants taking turns: the walk of docs/explanation/fairness.md. Its cost is that of the turns taken.
-- KEYS: the prefix. ARGV: now or '', epoch, claim id, lease in milliseconds, limit, 1 if tenants take turns, jobs a turn,
-- jobs readied a turn, claims that make a suspect, draws that a window remembers one by one, then the kinds.
-- Returns {-1} if the queue was not founded under this epoch; else now, idle milliseconds or -1, then of each job
-- id, kind, tenant, claims, due at.
if redis.call('GET', P .. ':epoch') ~= ARGV[2] then
  return {-1}
end
local now, claim_id, limit = moment(ARGV[1]), ARGV[3], tonumber(ARGV[5])
local now_us, ends_at = now * 1000, now + tonumber(ARGV[4])
local tuned = redis.call('HMGET', P .. ':fairness', 'is_fair', 'batch')
local is_fair, batch = (tuned[1] or ARGV[6]) == '1', tonumber(tuned[2] or ARGV[7])
local readied_a_turn, suspect_claims = tonumber(ARGV[8]), tonumber(ARGV[9])
local most_draws = tonumber(ARGV[10])
local SUSPECT_TURNS = 5  -- as in policy/fairness.py
local kinds, clocks, shares, seats, left, taken = {}, {}, {}, {}, {}, {}
local ends, records = {}, {}  -- of what was taken, to be stored at the end
local v, turn, seen_at, is_over = 0, 0, 0, false

-- Bytes, whatever the server's locale says.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    if a:byte(i) ~= b:byte(i) then
      return a:byte(i) < b:byte(i)
    end
  end
  return #a < #b
end

-- --- the rates of tenants: {interval_us, burst_us, next_us}

local function due_us(pace)
  local is_nonsense = pace.next_us > now_us + pace.burst_us + pace.interval_us
  return is_nonsense and now_us or math.max(pace.next_us, now_us)
end

local function tokens(pace)
  if pace.interval_us == 0 then
    return FAR
  end
  local spare = now_us + pace.burst_us - due_us(pace)
  return spare >= 0 and math.floor(spare / pace.interval_us) + 1 or 0
end

local function next_token_at(pace)
  return math.ceil((pace.next_us - pace.burst_us) / 1000)
end

-- --- send limits, as in policy/pacing.py: {count, per_ms, draws, left, sends}

local function read_limit(clock, kind, count, per_ms)
  clock.count, clock.per_ms, clock.draws, clock.left = count, per_ms, {}, count
  for _, draw in ipairs(load_draws(kind)) do
    if draw[1] + per_ms > now then
      clock.draws[#clock.draws + 1] = draw
      clock.left = math.max(0, clock.left - draw[2])
    end
  end
end

local function step_draws_back(clock, kind)
  for _, draw in ipairs(clock.draws) do
    draw[1] = math.min(draw[1], now)
  end
  save_draws(kind, clock.draws)
end

-- The draws of this call. Where there may be many, close ones are merged.
local function save_sends(clock, kind)
  local last = clock.draws[#clock.draws]
  local at, width = last and math.max(now, last[1]) or now, math.max(1, math.floor(clock.per_ms / most_draws))
  if last and clock.count > most_draws and math.floor(at / width) == math.floor(last[1] / width) then
    clock.draws[#clock.draws] = {at, last[2] + clock.sends, claim_id}
  else
    clock.draws[#clock.draws + 1] = {at, clock.sends, claim_id}
  end
  save_draws(kind, clock.draws)
end

local function next_send_at(clock)
  local over, at = 1 - clock.count, now
  for _, draw in ipairs(clock.draws) do
    over = over + draw[2]
  end
  for _, draw in ipairs(clock.draws) do
    if over <= 0 then
      break
    end
    over, at = over - draw[2], draw[1] + clock.per_ms
  end
  return at
end

-- --- what there is

local function share_of(tenant)
  if not shares[tenant] then
    local share = load_share(tenant)
    share.next_us = share.interval_us > 0 and tonumber(redis.call('HGET', P .. ':tokens', tenant) or 0) or 0
    shares[tenant] = share
  end
  return shares[tenant]
end

local function seat_of(kind, tenant)
  local name = kind .. '\t' .. tenant
  seats[name] = seats[name] or load_seat(kind, tenant)
  return seats[name]
end

local function slots_left(share)
  if share.cap < 0 then
    return FAR
  end
  if not share.in_flight then
    share.in_flight = 0
    for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
      local leased = key('leased', kind, share.tenant)
      share.in_flight = share.in_flight + redis.call('ZCOUNT', leased, string.format('(%.0f', now), now + LONGEST)
    end
  end
  return share.cap - share.in_flight
end

-- Jobs of a seat whose park has ended, the earliest first, up to a number: {parked until, id, from}.
local function due(seat, most)
  local found = {}
  local function look(place, least, greatest)
    local rows = redis.call('ZRANGEBYSCORE', place, least, greatest, 'WITHSCORES', 'LIMIT', 0, most)
    for i = 1, #rows, 2 do
      found[#found + 1] = {tonumber(rows[i + 1]), rows[i]}
    end
  end
  look(key('delayed', seat.kind, seat.tenant), '-inf', now)
  local delayed = #found
  look(key('leased', seat.kind, seat.tenant), '-inf', now)
  look(key('leased', seat.kind, seat.tenant), string.format('(%.0f', now + LONGEST), '+inf')
  if #found > delayed and delayed > 0 then
    table.sort(found, function(a, b)
      return a[1] < b[1] or (a[1] == b[1] and is_before(a[2], b[2]))
    end)
  end
  return found
end

-- --- before the walk

local function read_clocks()
  for i = 11, #ARGV do
    local kind = ARGV[i]
    local c = redis.call('HMGET', key('clock', kind), 'v', 'turn', 'seen_at', 'count', 'per_ms')
    clocks[kind] = {v = tonumber(c[1] or 0), left = FAR, sends = 0}
    if c[4] then
      read_limit(clocks[kind], kind, tonumber(c[4]), tonumber(c[5]))
    end
    kinds[#kinds + 1] = kind
    v, turn = math.max(v, clocks[kind].v), math.max(turn, tonumber(c[2] or 0))
    seen_at = math.max(seen_at, tonumber(c[3] or 0))
  end
end

local function wake()
  local has_stepped_back = now < seen_at - 1000  -- a smaller step comes from clocks that differ
  for _, kind in ipairs(kinds) do
    local alarms = key('alarms', kind)
    if has_stepped_back then
      redis.call('HSET', key('clock', kind), 'seen_at', now)
      if clocks[kind].draws then
        step_draws_back(clocks[kind], kind)
      end
    end
    for _, tenant in ipairs(redis.call('ZRANGEBYSCORE', alarms, '-inf', has_stepped_back and '+inf' or now)) do
      if share_of(tenant).is_held then
        redis.call('ZADD', alarms, FAR, tenant)
      else
        local seat = seat_of(kind, tenant)
        seat.vt, seat.since_turn, seat.is_changed = math.max(seat.vt, clocks[kind].v), turn, true
        redis.call('ZREM', alarms, tenant)
        redis.call('ZADD', key('ring', kind), seat.vt, ring_member(tenant, seat.last_turn))
      end
    end
  end
end

-- --- one visit

local function leave(seat, why)
  redis.call('ZREM', key('ring', seat.kind), ring_member(seat.tenant, seat.last_turn))
  seat.has_left = true
  left[#left + 1] = {seat, why}
end

local function leave_if_empty(seat)
  if redis.call('ZCARD', key('ready', seat.kind, seat.tenant)) == 0 and #due(seat, 1) == 0 then
    leave(seat, 'empty')
  end
end

-- A page of due jobs: at the first visit, because urgent ones may be among them, or if too few are ready.
local function ready(seat, wanted)
  if seat.was_visited and redis.call('ZCARD', key('ready', seat.kind, seat.tenant)) >= wanted then
    return
  end
  seat.was_visited = true
  for i, found in ipairs(due(seat, readied_a_turn)) do
    if i > readied_a_turn then
      return
    end
    local job = load_job(found[2])
    lift(job)
    lay(job, now, now)
  end
end

-- The next jobs of a seat. A suspect is taken alone or not at all, and the call ends there.
local function offered(seat, allowance)
  local ids = redis.call('ZRANGE', key('ready', seat.kind, seat.tenant), 0, allowance - 1)
  local packed, jobs = #ids > 0 and redis.call('HMGET', P .. ':jobs', unpack(ids)) or {}, {}
  for i, id in ipairs(ids) do
    local job = unpacked_job(id, packed[i])
    local is_suspect = job.claims >= suspect_claims
    if not is_suspect or (#taken == 0 and #jobs == 0) then
      jobs[#jobs + 1] = job
    end
    if is_suspect then
      is_over = true
      break
    end
  end
  return jobs
end

-- A suspect costs several turns: others wait for its claim.
local function count_turn(seat, jobs, stride)
  local cost = jobs[1].claims >= suspect_claims and SUSPECT_TURNS * batch or #jobs
  redis.call('ZREM', key('ring', seat.kind), ring_member(seat.tenant, seat.last_turn))
  v, turn = math.max(v, seat.vt), turn + 1
  seat.consecutive = #jobs
  seat.last_turn = turn
  seat.vt = seat.vt + cost * stride
  redis.call('ZADD', key('ring', seat.kind), seat.vt, ring_member(seat.tenant, seat.last_turn))
end

local function draw(pace, count)
  if pace.interval_us > 0 then
    pace.next_us = due_us(pace) + count * pace.interval_us
    pace.has_drawn = true
  end
end

local function take(seat, jobs, share)
  local ids, its_ends = {}, {}
  for i, job in ipairs(jobs) do
    job.claims, job.claim, job.where, job.is_held = job.claims + 1, claim_id, LEASED, false
    taken[#taken + 1] = job
    local last = 2 * #taken
    ids[i] = job.id
    its_ends[2 * i - 1], its_ends[2 * i] = ends_at, job.id
    ends[last - 1], ends[last] = ends_at, job.id
    records[last - 1], records[last] = job.id, packed_job(job)
  end
  redis.call('ZREM', key('ready', seat.kind, seat.tenant), unpack(ids))
  redis.call('ZADD', key('leased', seat.kind, seat.tenant), unpack(its_ends))
  seat.processed, seat.last_at, seat.is_changed = seat.processed + #jobs, now, true
  share.in_flight = share.in_flight and share.in_flight + #jobs
  draw(share, #jobs)
  local clock = clocks[seat.kind]
  clock.left, clock.sends = clock.left - #jobs, clock.sends + #jobs
end

local function visit(seat)
  local share = share_of(seat.tenant)
  if share.is_held then
    return leave(seat, 'pause')
  elseif slots_left(share) <= 0 then
    return leave(seat, 'cap')
  elseif tokens(share) <= 0 then
    return leave(seat, 'rate')
  end
  local most = math.min(is_fair and batch or 1, limit - #taken)
  local allowance = math.min(most, slots_left(share), tokens(share), clocks[seat.kind].left)
  ready(seat, allowance)
  local jobs = offered(seat, allowance)
  if #jobs > 0 and is_fair then
    count_turn(seat, jobs, share.stride)
  end
  if #jobs > 0 then
    take(seat, jobs, share)
  end
  leave_if_empty(seat)
end

-- --- the walk

local function least_served()
  local best
  for _, kind in ipairs(kinds) do
    local head = clocks[kind].left > 0 and redis.call('ZRANGE', key('ring', kind), 0, 0, 'WITHSCORES') or {}
    if head[1] then
      local one = {tonumber(head[2]), head[1] .. '\t' .. kind, kind, head[1]:sub(17)}
      if not best or one[1] < best[1] or (one[1] == best[1] and is_before(one[2], best[2])) then
        best = one
      end
    end
  end
  return best and seat_of(best[3], best[4])
end

local function walk_fairly()
  while not is_over and #taken < limit do
    local seat = least_served()
    if not seat then
      return
    end
    visit(seat)
  end
end

-- First in, first out across tenants: one job at a time, always the oldest.
local function walk_plainly()
  local line = {}
  local function queue_up(seat)
    ready(seat, 1)
    local head = redis.call('ZRANGE', key('ready', seat.kind, seat.tenant), 0, 0, 'WITHSCORES')
    if not head[1] then
      return leave_if_empty(seat)
    end
    local one = {tonumber(head[2]), head[1], seat}
    local low, high = 1, #line + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      local other = line[middle]
      if other[1] > one[1] or (other[1] == one[1] and is_before(one[2], other[2])) then
        low = middle + 1
      else
        high = middle
      end
    end
    table.insert(line, low, one)  -- the first is the last of the line
  end
  for _, kind in ipairs(kinds) do
    for _, member in ipairs(redis.call('ZRANGE', key('ring', kind), 0, -1)) do
      queue_up(seat_of(kind, member:sub(17)))
    end
  end
  while not is_over and #taken < limit and #line > 0 do
    local seat = table.remove(line)[3]
    if clocks[seat.kind].left > 0 then
      visit(seat)
      if not seat.has_left then
        queue_up(seat)
      end
    end
  end
end

-- --- after the walk

local function first_score(place, least, greatest)
  local found = redis.call('ZRANGEBYSCORE', place, least, greatest, 'WITHSCORES', 'LIMIT', 0, 1)
  return found[2] and tonumber(found[2]) or FAR
end

local function next_look(seat, why)
  local leased = key('leased', seat.kind, seat.tenant)
  if why == 'empty' then
    local impossible = first_score(leased, string.format('(%.0f', now + LONGEST), '+inf')
    local first = math.min(
      first_score(key('delayed', seat.kind, seat.tenant), '-inf', '+inf'), first_score(leased, '-inf', '+inf'))
    return impossible < FAR and math.min(first, now) or first
  elseif why == 'cap' then
    local first = FAR
    for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
      local place = key('leased', kind, seat.tenant)
      first = math.min(first, first_score(place, string.format('(%.0f', now), now + LONGEST))
    end
    return first
  elseif why == 'rate' then
    return next_token_at(share_of(seat.tenant))
  end
  return FAR
end

-- Virtual time is exact up to 2^53: long before that, all seats are reduced by the same amount.
local function wind_back()
  local by = 2251799813685248
  for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
    local before = tonumber(redis.call('HGET', key('clock', kind), 'v') or 0)
    redis.call('HSET', key('clock', kind), 'v', math.max(0, before - by))
    for _, tenant in ipairs(redis.call('HKEYS', key('seats', kind))) do
      local seat = load_seat(kind, tenant)
      seat.vt = math.max(0, seat.vt - by)
      save_seat(seat)
      redis.call('ZADD', key('ring', kind), 'XX', seat.vt, ring_member(tenant, seat.last_turn))
    end
  end
end

local function store()
  for _, gone in ipairs(left) do
    redis.call('ZADD', key('alarms', gone[1].kind), next_look(gone[1], gone[2]), gone[1].tenant)
  end
  for _, seat in pairs(seats) do
    if seat.is_changed then
      save_seat(seat)
    end
  end
  for tenant, share in pairs(shares) do
    if share.has_drawn then
      redis.call('HSET', P .. ':tokens', tenant, share.next_us)
    end
  end
  if #taken == 0 then
    return
  end
  for first = 1, #ends, 1000 do  -- more does not fit on the stack
    local last = math.min(first + 999, #ends)
    redis.call('ZADD', P .. ':leases', unpack(ends, first, last))
    redis.call('HSET', P .. ':jobs', unpack(records, first, last))
  end
  for _, kind in ipairs(kinds) do
    local clock = clocks[kind]
    redis.call('HSET', key('clock', kind), 'v', math.max(clock.v, v), 'turn', turn, 'seen_at', now)
    if clock.draws and clock.sends > 0 then
      save_sends(clock, kind)
    end
  end
  if v > 4503599627370496 then
    wind_back()
  end
end

local function idle()
  local first = FAR
  for _, kind in ipairs(kinds) do
    if redis.call('ZCARD', key('ring', kind)) > 0 then
      first = math.min(first, clocks[kind].left > 0 and now or next_send_at(clocks[kind]))
    end
    first = math.min(first, first_score(key('alarms', kind), '-inf', '+inf'))
  end
  return first == FAR and -1 or math.max(0, first - now)
end

read_clocks()
wake()
if is_fair then
  walk_fairly()
else
  walk_plainly()
end
store()
local answer = {now, idle()}
for _, job in ipairs(taken) do
  answer[#answer + 1] = job.id
  answer[#answer + 1] = job.kind
  answer[#answer + 1] = job.tenant
  answer[#answer + 1] = job.claims
  answer[#answer + 1] = job.rank % STEP
end
return answer
