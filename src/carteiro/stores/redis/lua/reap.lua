#!lua flags=allow-oom
-- Makes jobs ready whose lease or hold has expired, or ends later than any can. KEYS: the prefix.
-- ARGV: now or '', limit. Returns the number.
local now = moment(ARGV[1])
local lost = expired(P .. ':ends', now, tonumber(ARGV[2]))
for _, found in ipairs(lost) do
  local group = group_of(found[3])
  lose(found[2], found[3])
  touch(group.kind, group.tenant, now)
  free({group.tenant}, now)
end
if #lost > 0 then
  bell()
end
return #lost
