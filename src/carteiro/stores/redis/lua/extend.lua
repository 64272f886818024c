#!lua flags=allow-oom
-- Extends valid claims: their end moves to the given number of milliseconds from now.
-- KEYS: the prefix. ARGV: now or '', epoch, how, a list with job, claim, milliseconds of each. How: 'ask' changes nothing,
-- 'extend' never shortens, 'hold' sets each end once, 'unhold' undoes that.
-- Returns now, then for each the end before, 0 if another claim has the job; {-1} alone if the queue was not founded
-- under this epoch.
if redis.call('GET', P .. ':epoch') ~= ARGV[2] then
  return {-1}
end
local now, how, leases = moment(ARGV[1]), ARGV[3], cjson.decode(ARGV[4])
local answer, ids, ends, held, moves, order, planned = {now}, {}, {}, {}, {}, {}, {}

local function may_move(name, ends_at)
  if how == 'hold' and held[name] == nil then
    held[name] = redis.call('HEXISTS', P .. ':held', name) == 1
  end
  return (how == 'hold' and not held[name]) or how == 'unhold' or (how == 'extend' and ends_at > ends[name])
end

-- Jobs of one group that get the same end are moved together.
local function plan(id, name, ends_at)
  local move = name .. '\t' .. as_text(ends_at)
  if not moves[move] then
    moves[move] = {name = name, ends_at = ends_at, ids = {}}
    order[#order + 1] = moves[move]
  end
  table.insert(moves[move].ids, id)
  planned[id] = true
end

local function move(name, its, ends_at)
  local group, target = group_of(name), name
  local is_held = how == 'hold' or (how == 'extend' and redis.call('HEXISTS', P .. ':held', name) == 1)
  if tonumber(redis.call('HGET', P .. ':left', name)) == #its then
    set_end(name, ends_at)
  else  -- the others keep their end
    target = group.claim .. '\t' .. as_text(redis.call('INCR', P .. ':parts')) .. '\t' .. group.seat
    add_group(target, its, ends_at)
    shrink(name, #its)
  end
  if is_held then
    redis.call('HSET', P .. ':held', target, 1)
  elseif how == 'unhold' then
    redis.call('HDEL', P .. ':held', target)
  end
  touch(group.kind, group.tenant, ends_at)
end

for i, lease in ipairs(leases) do
  ids[i] = lease[1]
end
for i, name in ipairs(values(P .. ':leases', ids)) do
  answer[i + 1] = 0
  if name and group_of(name).claim == leases[i][2] then
    ends[name] = ends[name] or end_of(name)
    answer[i + 1] = ends[name]
    if not planned[ids[i]] and may_move(name, now + leases[i][3]) then
      plan(ids[i], name, now + leases[i][3])
    end
  end
end
for _, each in ipairs(order) do
  move(each.name, each.ids, each.ends_at)
end
return answer
