#!lua flags=allow-oom
-- Gives claimed jobs back as if they had never been claimed, tokens included.
-- KEYS: the prefix. ARGV: now or '', the wait in milliseconds, a list with job, claim of each.
local now = moment(ARGV[1])
local parked_until = now + tonumber(ARGV[2])

local function undraw(kind, claim)
  if redis.call('HEXISTS', key('clock', kind), 'count') == 0 then
    return
  end
  local left = {}
  for _, draw in ipairs(load_draws(kind)) do
    draw[2] = draw[2] - (draw[3] == claim and 1 or 0)
    if draw[2] > 0 then
      left[#left + 1] = draw
    end
  end
  save_draws(kind, left)
end

for _, lease in ipairs(cjson.decode(ARGV[3])) do
  local id, claim = unpack(lease)
  local name = redis.call('HGET', P .. ':leases', id)
  if name and group_of(name).claim == claim then
    local group = group_of(name)
    unlease(id, name)
    lay(load_job(id), parked_until, now)
    touch(group.kind, group.tenant, parked_until)
    local share = load_share(group.tenant)
    if share.interval_us > 0 then
      redis.call('HINCRBY', P .. ':tokens', group.tenant, -share.interval_us)
    end
    undraw(group.kind, claim)
    free({group.tenant}, now)
  end
end
bell()
