-- Makes parked jobs claimable now, whoever had them; `drop_parked` takes them from where they were. :ids = [id, …]
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no, claims)
SELECT tenant, kind, priority, due_at, id, message_no, claims
FROM parked
WHERE id IN (SELECT value FROM json_each(:ids));
