-- Count a failure of a ticket; the count has its time to live from now on, whatever happens next.
-- KEYS: the count. ARGV: the number to add, the least result, seconds to live.
-- Returns the count. A value that is not a number counts as 0.
local held = redis.pcall('GET', KEYS[1])
local count = type(held) == 'string' and #held < 10 and held:match('^%d+$') and tonumber(held) or 0
count = math.max(count + tonumber(ARGV[1]), tonumber(ARGV[2]))
redis.call('SET', KEYS[1], count, 'EX', ARGV[3])
return count
