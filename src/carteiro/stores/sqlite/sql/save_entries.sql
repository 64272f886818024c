-- Stores what the rules changed. :rows = [[message no, state, due_at, expires_at, attempts, charged, in_doubt, round, holder,
-- held_until, cancel_requested_at, evidence, provider, provider id, failure, duration_ms, finished_at], …]
UPDATE messages
SET
    state = r.value ->> 1, due_at = r.value ->> 2, expires_at = r.value ->> 3, attempts = r.value ->> 4,
    charged = r.value ->> 5, in_doubt = r.value ->> 6, round = r.value ->> 7, holder = r.value ->> 8,
    held_until = r.value ->> 9, cancel_requested_at = r.value ->> 10, evidence = r.value ->> 11,
    provider = r.value ->> 12, provider_message_id = r.value ->> 13, failure = r.value ->> 14,
    duration_ms = r.value ->> 15, finished_at = r.value ->> 16
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;
