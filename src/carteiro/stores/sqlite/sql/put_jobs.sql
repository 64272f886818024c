-- Makes jobs claimable. :rows = [[id, kind, tenant, priority, due_at, expires_at, parked_until], …]
INSERT INTO jobs (id, kind, tenant, priority, due_at, expires_at, parked_until)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM json_each(:rows);
