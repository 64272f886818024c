-- Count a failure of each ticket; its count has its time to live from now on, whatever happens next.
-- KEYS: numbers that are only raised to their least result, then the counts. ARGV: how many are only raised, seconds to
-- live, then the least result for each. Returns the numbers. A value that is not a number counts as 0.
local numbers, raised = {}, tonumber(ARGV[1])
for at, key in ipairs(KEYS) do
  local held = redis.pcall('GET', key)
  local number = type(held) == 'string' and #held < 16 and held:match('^%d+$') and tonumber(held) or 0
  numbers[at] = math.max(number + (at > raised and 1 or 0), tonumber(ARGV[2 + at]))
  redis.call('SET', key, string.format('%.0f', numbers[at]), 'EX', ARGV[2])
end
return numbers
