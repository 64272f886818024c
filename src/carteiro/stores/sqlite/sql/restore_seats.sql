-- A seat for every tenant with jobs of a kind, to be looked at now. :now
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT kind, tenant, :now, count(*)
FROM messages
WHERE finished_at IS NULL
GROUP BY kind, tenant;
