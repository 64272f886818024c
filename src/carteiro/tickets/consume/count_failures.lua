-- Count a failure of each ticket; its count has its time to live from now on, whatever happens next.
-- KEYS: the counts. ARGV: the number to add to each, seconds to live, then the least result for each.
-- Returns the counts. A value that is not a number counts as 0.
local counts = {}
for at, key in ipairs(KEYS) do
  local held = redis.pcall('GET', key)
  local count = type(held) == 'string' and #held < 10 and held:match('^%d+$') and tonumber(held) or 0
  counts[at] = math.max(count + tonumber(ARGV[1]), tonumber(ARGV[2 + at]))
  redis.call('SET', key, counts[at], 'EX', ARGV[2])
end
return counts
