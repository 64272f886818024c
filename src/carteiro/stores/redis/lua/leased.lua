#!lua flags=allow-oom
-- For each job, 1 if it has a live lease. KEYS: the prefix. ARGV: now or '', epoch, a list of the ids.
-- Returns 1 or 0 for each; {-1} alone if the queue was not founded under this epoch.
if redis.call('GET', P .. ':epoch') ~= ARGV[2] then
  return {-1}
end
local now, leased = moment(ARGV[1]), {}
for _, id in ipairs(cjson.decode(ARGV[3])) do
  local ends_at = redis.call('ZSCORE', P .. ':leases', id)
  leased[#leased + 1] = ends_at and is_live(tonumber(ends_at), now) and 1 or 0
end
return leased
