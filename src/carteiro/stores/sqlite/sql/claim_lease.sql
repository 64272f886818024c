-- Leases jobs; `claim_take` takes them from where they waited.
-- :rows = [[tenant, kind, priority, due_at, id, message no, claims], …]; :claim; :until
INSERT INTO parked (
    tenant, kind, priority, due_at, id, message_no, claims, parked_until, is_claimed, claim_id
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, :until, 1, :claim
FROM json_each(:rows);
