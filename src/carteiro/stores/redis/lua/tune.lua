#!lua flags=allow-oom
-- Sets the fairness settings of all workers, or restores the configured ones.
-- KEYS: the prefix. ARGV: 1 if tenants take turns, jobs a turn; or nothing.
redis.call('DEL', P .. ':fairness')
if ARGV[1] then
  redis.call('HSET', P .. ':fairness', 'is_fair', ARGV[1], 'batch', ARGV[2])
end
bell()
