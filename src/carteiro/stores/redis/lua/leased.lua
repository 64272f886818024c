#!lua flags=allow-oom
-- For each job, 1 if it has a live lease. KEYS: the prefix. ARGV: now or '', epoch, a list of the ids.
-- Returns 1 or 0 for each; {-1} alone if the queue was not founded under this epoch.
if redis.call('GET', P .. ':epoch') ~= ARGV[2] then
  return {-1}
end
local now, leased = moment(ARGV[1]), {}
for i, name in ipairs(values(P .. ':leases', cjson.decode(ARGV[3]))) do
  leased[i] = name and is_live(end_of(name), now) and 1 or 0
end
return leased
