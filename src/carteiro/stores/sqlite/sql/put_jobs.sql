-- Makes jobs claimable. :rows = [[id, kind, tenant, priority, due_at, expires_at, parked_until], …]
INSERT INTO jobs (id, kind, tenant, priority, due_at, expires_at, parked_until, message_no)
SELECT
    m.id, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6, m.no
FROM json_each(:rows) AS r CROSS JOIN messages AS m ON m.id = r.value ->> 0;
