-- Stores what was sent, the usual end: fewer columns than `save_entries` is half the time.
-- :rows = [[message no, attempts, in_doubt, holder, provider, provider id, duration_ms, finished_at], …]
UPDATE messages
SET
    state = 'SENT', attempts = r.value ->> 1, in_doubt = r.value ->> 2, holder = r.value ->> 3,
    held_until = NULL, provider = r.value ->> 4, provider_message_id = r.value ->> 5, failure = NULL,
    duration_ms = r.value ->> 6, finished_at = r.value ->> 7
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;
