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

-- Looks up the ends of the groups, and whether they are held.
local function look_up(names)
  local wanted, known = {}, {}
  for _, name in ipairs(names) do
    if name and not known[name] then
      known[name] = true
      wanted[#wanted + 1] = name
    end
  end
  local is_held = values(P .. ':held', wanted)
  for i, name in ipairs(wanted) do
    ends[name], held[name] = end_of(name), is_held[i] ~= false
  end
end

local function may_move(name, ends_at)
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

-- A group whose jobs all move gets a new end; else the others keep theirs, and those that move are a new group.
local function move_all()
  local names, new, gone, new_ends, now_held, unheld = {}, {}, {}, {}, {}, {}
  for i, each in ipairs(order) do
    names[i] = each.name
  end
  for i, left in ipairs(values(P .. ':left', names)) do
    local each, group = order[i], group_of(names[i])
    local target = each.name
    if tonumber(left) == #each.ids then
      add(new_ends, each.ends_at, target)
      redis.call('ZADD', P .. ':leased:' .. group.seat, each.ends_at, target)
    else
      target = group.claim .. '\t' .. as_text(redis.call('INCR', P .. ':parts')) .. '\t' .. group.seat
      new[#new + 1] = {target, each.ids, each.ends_at}
      gone[each.name] = (gone[each.name] or 0) + #each.ids
    end
    if how == 'hold' or (how == 'extend' and held[each.name]) then
      add(now_held, target, 1)
    else
      unheld[#unheld + 1] = target
    end
    touch(group.kind, group.tenant, each.ends_at)
  end
  many('ZADD', P .. ':ends', new_ends)
  store_groups(new)
  shrink(gone)
  many('HSET', P .. ':held', now_held)
  many('HDEL', P .. ':held', unheld)
end

for i, lease in ipairs(leases) do
  ids[i] = lease[1]
end
local names = values(P .. ':leases', ids)
look_up(names)
for i, name in ipairs(names) do
  local is_its = name and group_of(name).claim == leases[i][2]
  answer[i + 1] = is_its and ends[name] or 0
  local ends_at = now + leases[i][3]
  if is_its and not planned[ids[i]] and may_move(name, ends_at) then
    plan(ids[i], name, ends_at)
  end
end
move_all()
return answer
