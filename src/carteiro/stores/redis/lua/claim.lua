#!lua flags=allow-oom
-- Leases ready jobs, tenants taking turns: the walk of docs/explanation/fairness.md and `carteiro.policy.turns`.
-- It works on copies of the seats, which are written back once. Its cost is that of the turns taken.
-- KEYS: the prefix. ARGV: now or '', epoch, claim id, lease in milliseconds, limit, jobs ahead of it, 1 if tenants take
-- turns, jobs a turn, jobs readied a turn, claims that make a suspect, draws that a window remembers one by one, then
-- the kinds. Returns {-1} if the queue was not founded under this epoch; else now, idle milliseconds or -1, the kinds and
-- the tenants of the seats, and of the jobs: ids, numbers of their seats, claims, due times.
if redis.call('GET', P .. ':epoch') ~= ARGV[2] then
  return {-1}
end
local now, claim_id = moment(ARGV[1]), ARGV[3]
local now_us, ends_at = now * 1000, now + tonumber(ARGV[4])
local ahead = tonumber(ARGV[6])
local room = tonumber(ARGV[5]) + ahead  -- jobs to be taken, the last ones only from seats without a limit
local tuned = redis.call('HMGET', P .. ':fairness', 'is_fair', 'batch')
local is_fair, batch = (tuned[1] or ARGV[7]) == '1', tonumber(tuned[2] or ARGV[8])
local readied_a_turn, suspect_claims, most_draws = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local SUSPECT_TURNS = 5  -- as in policy/fairness.py
local has_counts = redis.call('EXISTS', P .. ':claims') == 1
local kinds, clocks, shares, seats, left = {}, {}, {}, {}, {}
local its_kinds, its_tenants, ids, numbers, counts, dues, taken = {}, {}, {}, {}, {}, {}, 0  -- of the answer
local v, turn, seen_at, is_over, has_expired, heads = 0, 0, 0, false, false, 1

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

local function share_of(tenant, packed)
  if not shares[tenant] then
    local share = packed == nil and load_share(tenant) or read_share(tenant, packed)
    share.next_us = share.interval_us > 0 and tonumber(redis.call('HGET', P .. ':tokens', tenant) or 0) or 0
    shares[tenant] = share
  end
  return shares[tenant]
end

local function seat_of(kind, tenant, packed)
  local name = kind .. '\t' .. tenant
  if not seats[name] then
    local seat = packed and read_seat(kind, tenant, packed) or load_seat(kind, tenant)
    seat.name, seat.clock, seat.member = name, clocks[kind], ring_member(tenant, seat.last_turn)
    seat.ids, seat.ranks, seat.counts, seat.at, seat.taken = {}, {}, {}, 1, {}
    seats[name] = seat
  end
  return seats[name]
end

local function slots_left(share)
  if share.cap < 0 then
    return FAR
  end
  if not share.in_flight then
    share.in_flight = 0
    for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
      share.in_flight = share.in_flight + in_flight(kind .. '\t' .. share.tenant, now)
    end
  end
  return share.cap - share.in_flight
end

local function first_score(place, least, greatest)
  local found = redis.call('ZRANGEBYSCORE', place, least, greatest, 'WITHSCORES', 'LIMIT', 0, 1)
  return found[2] and tonumber(found[2]) or FAR
end

-- Jobs of a seat whose park has ended, the earliest first, up to a number: {parked until, id, group if it was leased}.
local function due(seat, most)
  local found = has_expired and expired(P .. ':leased:' .. seat.name, now, most) or {}
  local has_lost = #found > 0
  local rows = redis.call('ZRANGEBYSCORE', P .. ':delayed:' .. seat.name, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #rows, 2 do
    found[#found + 1] = {tonumber(rows[i + 1]), rows[i]}
  end
  if has_lost and #rows > 0 then
    table.sort(found, function(a, b)
      return a[1] < b[1] or (a[1] == b[1] and is_before(a[2], b[2]))
    end)
  end
  return found
end

-- --- before the walk

local function read_clocks()
  for i = 12, #ARGV do
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
        redis.call('ZADD', key('ring', kind), seat.vt, seat.member)
      end
    end
  end
end

-- --- one visit

local function leave(seat, why)
  seat.has_left = true
  left[#left + 1] = {seat, why}
end

local function waiting(seat)
  return #seat.ids - seat.at + 1
end

-- Takes what was taken out of the set of ready jobs: always the first ones.
local function flush(seat)
  if seat.at > 1 then
    redis.call('ZREMRANGEBYRANK', P .. ':ready:' .. seat.name, 0, seat.at - 2)
  end
end

-- Looks up the next ready jobs.
local function refill(seat, wanted)
  flush(seat)
  local most = math.max(wanted, heads) + 1
  local rows = redis.call('ZRANGE', P .. ':ready:' .. seat.name, 0, most - 1, 'WITHSCORES')
  local its_ids, ranks = {}, {}
  for i = 1, #rows / 2 do
    its_ids[i], ranks[i] = rows[2 * i - 1], rows[2 * i]
  end
  seat.ids, seat.ranks, seat.at, seat.has_more = its_ids, ranks, 1, #its_ids == most
  seat.counts = has_counts and values(P .. ':claims', its_ids) or {}
end

-- Makes a page of due jobs ready, also those whose lease has expired.
local function ready(seat, wanted)
  flush(seat)
  seat.at = 1
  local found = due(seat, readied_a_turn)
  for i = 1, math.min(#found, readied_a_turn) do
    local id, name = found[i][2], found[i][3]
    if name then
      lose(id, name)
      has_counts = true
    else
      redis.call('ZREM', P .. ':delayed:' .. seat.name, id)
      redis.call('ZADD', P .. ':ready:' .. seat.name, load_job(id).rank, id)
    end
  end
  seat.is_due = #found >= readied_a_turn
  refill(seat, wanted)
end

-- Due jobs are made ready at the first visit, as urgent ones may be among them, and if too few are ready.
local function look_ahead(seat, wanted)
  if not seat.was_visited then
    seat.was_visited = true
    return ready(seat, wanted)
  end
  if waiting(seat) < wanted and seat.has_more then
    refill(seat, wanted)
  end
  if waiting(seat) < wanted and seat.is_due then
    ready(seat, wanted)
  end
end

local function leave_if_empty(seat)
  if waiting(seat) == 0 and seat.has_more then
    refill(seat, 1)
  end
  if waiting(seat) == 0 and not (seat.is_due and #due(seat, 1) > 0) then
    leave(seat, 'empty')
  end
end

local function claims_of(seat, place)
  return tonumber(seat.counts[place] or 0)
end

-- The number of jobs offered. A suspect is taken alone or not at all, and the call ends there.
local function offered(seat, most)
  local count = math.min(most, waiting(seat))
  for i = 1, has_counts and count or 0 do
    if claims_of(seat, seat.at + i - 1) >= suspect_claims then
      is_over = true
      return (taken == 0 and i == 1) and 1 or i - 1
    end
  end
  return count
end

-- A suspect costs several turns: others wait for its claim.
local function count_turn(seat, count, stride)
  local cost = claims_of(seat, seat.at) >= suspect_claims and SUSPECT_TURNS * batch or count
  v, turn = math.max(v, seat.vt), turn + 1
  seat.consecutive = count
  seat.last_turn = turn
  seat.vt = seat.vt + cost * stride
end

local function draw(pace, count)
  if pace.interval_us > 0 then
    pace.next_us = due_us(pace) + count * pace.interval_us
    pace.has_drawn = true
  end
end

local function take(seat, count, share)
  if not seat.number then
    seat.number = #its_kinds
    its_kinds[seat.number + 1], its_tenants[seat.number + 1] = seat.kind, seat.tenant
  end
  local its_ids, its_ranks, its_taken, number = seat.ids, seat.ranks, seat.taken, seat.number
  local had = #its_taken - seat.at + 1
  for place = seat.at, seat.at + count - 1 do
    taken = taken + 1
    ids[taken], its_taken[had + place] = its_ids[place], its_ids[place]
    numbers[taken], dues[taken] = number, its_ranks[place] % STEP
    counts[taken] = has_counts and claims_of(seat, place) + 1 or 1
  end
  seat.at, room = seat.at + count, room - count
  seat.processed, seat.last_at, seat.is_changed = seat.processed + count, now, true
  share.in_flight = share.in_flight and share.in_flight + count
  draw(share, count)
  seat.clock.left, seat.clock.sends = seat.clock.left - count, seat.clock.sends + count
end

-- False: the claim passes the seat over, and it keeps its place in the ring.
local function may_serve(seat)
  if seat.is_limited == nil then
    local share = share_of(seat.tenant)
    seat.is_limited = share.is_held or share.cap >= 0 or share.interval_us > 0 or seat.clock.draws ~= nil
  end
  return not seat.is_limited or (seat.clock.left > 0 and room > ahead)
end

local function visit(seat)
  local share = share_of(seat.tenant)
  local most = math.min(is_fair and batch or 1, room)
  if seat.is_limited then
    if share.is_held then
      return leave(seat, 'pause')
    elseif slots_left(share) <= 0 then
      return leave(seat, 'cap')
    elseif tokens(share) <= 0 then
      return leave(seat, 'rate')
    end
    most = math.min(most, room - ahead, slots_left(share), tokens(share), seat.clock.left)
  end
  look_ahead(seat, most)
  local count = offered(seat, most)
  if count > 0 and is_fair then
    count_turn(seat, count, share.stride)
  end
  if count > 0 then
    take(seat, count, share)
  end
  leave_if_empty(seat)
end

-- --- the walk: a line of seats, in which the last is the next

local function comes_before(a, b)
  if a.vt ~= b.vt then
    return a.vt < b.vt
  elseif a.last_turn ~= b.last_turn then
    return a.last_turn < b.last_turn
  elseif a.tenant ~= b.tenant then
    return is_before(a.tenant, b.tenant)
  end
  return is_before(a.kind, b.kind)
end

local function older(a, b)
  if a.rank ~= b.rank then
    return a.rank < b.rank
  end
  return is_before(a.id, b.id)
end

local function join(line, one, is_first)
  local low, high = 1, #line + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_first(one, line[middle]) then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(line, low, one)
end

-- The next seats of a kind's ring.
local function load_page(ring, line, size)
  local rows = redis.call('ZRANGE', key('ring', ring.kind), ring.at, ring.at + size - 1)
  local tenants = {}
  for i, member in ipairs(rows) do
    tenants[i] = member:sub(17)
  end
  local its_seats, its_shares = values(key('seats', ring.kind), tenants), values(P .. ':shares', tenants)
  for i, tenant in ipairs(tenants) do
    share_of(tenant, its_shares[i])
    ring.last = seat_of(ring.kind, tenant, its_seats[i])
    join(line, ring.last, comes_before)
  end
  ring.last = ring.last and {vt = ring.last.vt, last_turn = ring.last.last_turn, tenant = ring.last.tenant, kind = ring.kind}
  ring.at, ring.is_done = ring.at + #rows, #rows < size
end

local function walk_fairly()
  local line, rings, size = {}, {}, math.max(8, math.ceil(room / batch))
  for i, kind in ipairs(kinds) do
    rings[i] = {kind = kind, at = 0}
  end
  while not is_over and room > 0 do
    for _, ring in ipairs(rings) do
      local clock = clocks[ring.kind]
      ring.is_done = ring.is_done or (clock.draws ~= nil and (clock.left <= 0 or room <= ahead))
      while not ring.is_done and (#line == 0 or (ring.last and comes_before(ring.last, line[#line])) or not ring.last) do
        load_page(ring, line, size)
        heads = math.max(heads, batch * math.ceil(room / (batch * math.max(1, #line))))
      end
    end
    local seat = table.remove(line)
    if not seat then
      return
    end
    if may_serve(seat) then
      visit(seat)
      if not seat.has_left then
        join(line, seat, comes_before)
      end
    end
  end
end

-- First in, first out across tenants: one job at a time, always the oldest.
local function walk_plainly()
  local line = {}
  local function queue_up(seat)
    look_ahead(seat, 1)
    if waiting(seat) == 0 then
      return leave_if_empty(seat)
    end
    join(line, {rank = tonumber(seat.ranks[seat.at]), id = seat.ids[seat.at], seat = seat}, older)
  end
  for _, kind in ipairs(kinds) do
    for _, member in ipairs(redis.call('ZRANGE', key('ring', kind), 0, -1)) do
      local seat = seat_of(kind, member:sub(17))
      if may_serve(seat) then
        queue_up(seat)
      end
    end
  end
  while not is_over and room > 0 and #line > 0 do
    local seat = table.remove(line).seat
    if may_serve(seat) then
      visit(seat)
      if not seat.has_left then
        queue_up(seat)
      end
    end
  end
end

-- --- after the walk

local function next_look(seat, why)
  local leased = P .. ':leased:' .. seat.name
  if why == 'empty' then
    local impossible = has_expired and first_score(leased, '(' .. as_text(now + LONGEST), '+inf') or FAR
    local first = math.min(first_score(P .. ':delayed:' .. seat.name, '-inf', '+inf'), first_score(leased, '-inf', '+inf'))
    return impossible < FAR and math.min(first, now) or first
  elseif why == 'cap' then
    local first = FAR
    for _, kind in ipairs(redis.call('SMEMBERS', P .. ':kinds')) do
      first = math.min(first, first_score(key('leased', kind, seat.tenant), '(' .. as_text(now), now + LONGEST))
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

local function store_leases()
  local new = {}
  for _, seat in pairs(seats) do
    flush(seat)
    if #seat.taken > 0 then
      new[#new + 1] = {claim_id .. '\t\t' .. seat.name, seat.taken, ends_at}
    end
  end
  store_groups(new)
end

local function store_seats()
  local alarms, out_of, into, changed = {}, {}, {}, {}
  for _, kind in ipairs(kinds) do
    alarms[kind], out_of[kind], into[kind], changed[kind] = {}, {}, {}, {}
  end
  for _, gone in ipairs(left) do
    add(alarms[gone[1].kind], next_look(gone[1], gone[2]), gone[1].tenant)
  end
  for _, seat in pairs(seats) do
    local member = ring_member(seat.tenant, seat.last_turn)
    if seat.has_left or member ~= seat.member then
      table.insert(out_of[seat.kind], seat.member)
    end
    if not seat.has_left and member ~= seat.member then
      add(into[seat.kind], seat.vt, member)
    end
    if seat.is_changed then
      add(changed[seat.kind], seat.tenant, packed_seat(seat))
    end
  end
  for _, kind in ipairs(kinds) do
    many('ZADD', key('alarms', kind), alarms[kind])
    many('ZREM', key('ring', kind), out_of[kind])
    many('ZADD', key('ring', kind), into[kind])
    many('HSET', key('seats', kind), changed[kind])
  end
  for tenant, share in pairs(shares) do
    if share.has_drawn then
      redis.call('HSET', P .. ':tokens', tenant, share.next_us)
    end
  end
end

local function store_clocks()
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
has_expired = first_score(P .. ':ends', '-inf', now) < FAR or first_score(P .. ':ends', '(' .. as_text(now + LONGEST), '+inf') < FAR
if is_fair then
  walk_fairly()
else
  walk_plainly()
end
store_leases()
store_seats()
if taken > 0 then
  store_clocks()
end

return {now, idle(), its_kinds, its_tenants, ids, numbers, counts, dues}
