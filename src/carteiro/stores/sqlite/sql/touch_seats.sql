-- Sets alarms of seats outside the ring (never later than they were) and counts their jobs; the ring itself is
-- changed by claim alone. :rows = [[kind, tenant, wake_at, jobs more or less], …]
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:rows)
WHERE true
ON CONFLICT (kind, tenant) DO UPDATE
SET wake_at = min(wake_at, excluded.wake_at), jobs = jobs + excluded.jobs;
