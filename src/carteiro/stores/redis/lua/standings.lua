#!lua flags=allow-oom
-- The standings of the tenants of a kind. KEYS: the prefix. ARGV: now or '', kind.
-- Returns for each: vt, tenant, last turn, last processed at or 0, turn, the turn since when it waits or -1, processed, consecutive, jobs, in flight, seated.
local now, kind = moment(ARGV[1]), ARGV[2]
local turn = tonumber(redis.call('HGET', key('clock', kind), 'turn') or 0)
local seated, rows = redis.call('ZCARD', key('ring', kind)), {}
for _, tenant in ipairs(redis.call('HKEYS', key('seats', kind))) do
  local seat, name = load_seat(kind, tenant), kind .. '\t' .. tenant
  local jobs = redis.call('ZCARD', P .. ':ready:' .. name) + redis.call('ZCARD', P .. ':delayed:' .. name)
    + all_leased(name)
  local is_in_ring = redis.call('ZSCORE', key('ring', kind), ring_member(tenant, seat.last_turn))
  local since = is_in_ring and math.max(seat.last_turn, seat.since_turn) or -1
  rows[#rows + 1] = {
    seat.vt, tenant, seat.last_turn, seat.last_at, turn, since, seat.processed, seat.consecutive, jobs,
    in_flight(name, now), seated
  }
end
return rows
