-- Stores what the rules changed. :rows = [[message no, state, due_at, expires_at, attempts, charged, in_doubt, round,
-- revision, holder, held_until, cancel_requested_at, evidence, provider, provider id, failure, duration_ms,
-- finished_at], …]
UPDATE messages
SET
    state = r.value ->> 1, due_at = r.value ->> 2, expires_at = r.value ->> 3, attempts = r.value ->> 4,
    charged = r.value ->> 5, in_doubt = r.value ->> 6, round = r.value ->> 7, revision = r.value ->> 8,
    holder = r.value ->> 9, held_until = r.value ->> 10, cancel_requested_at = r.value ->> 11,
    evidence = r.value ->> 12, provider = r.value ->> 13, provider_message_id = r.value ->> 14,
    failure = r.value ->> 15, duration_ms = r.value ->> 16, finished_at = r.value ->> 17
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;
