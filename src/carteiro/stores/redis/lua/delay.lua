#!lua flags=allow-oom
-- Parks jobs, without a claim and without counting one; skips jobs that another claim has. Due jobs are parked, too, so
-- that the same call again changes nothing.
-- KEYS: the prefix. ARGV: now or '', then id, claim, due at, parked until of each.
local now = moment(ARGV[1])
for i = 2, #ARGV, 4 do
  local job, parked_until = load_job(ARGV[i]), tonumber(ARGV[i + 3])
  if job and (job.where ~= LEASED or job.claim == ARGV[i + 1]) then
    lift(job)
    if job.where == LEASED then
      free(job.tenant, now)
    end
    job.rank, job.claims = job.rank - job.rank % STEP + tonumber(ARGV[i + 2]), 0
    park(job, parked_until)
    touch(job.kind, job.tenant, parked_until)
  end
end
bell()
