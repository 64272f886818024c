-- The hold of a declared attempt replaces the lease. :rows = [[id, held_until], …]
UPDATE jobs
SET parked_until = r.value ->> 1
FROM json_each(:rows) AS r
WHERE jobs.id = r.value ->> 0;
