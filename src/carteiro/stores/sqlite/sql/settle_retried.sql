-- Stores what is to be tried again, the second most usual end; as `settle_sent`, fewer columns are less time.
-- :rows = [[message no, attempts, charged, in_doubt, holder, due_at, failure, duration_ms], …]
UPDATE messages
SET
    state = 'RETRY_SCHEDULED', attempts = r.value ->> 1, charged = r.value ->> 2, in_doubt = r.value ->> 3,
    holder = r.value ->> 4, held_until = NULL, due_at = r.value ->> 5, failure = r.value ->> 6,
    duration_ms = r.value ->> 7
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;
