-- What became of the next messages. :after = [message no]
SELECT
    no AS message_no, state, due_at, expires_at, attempts, charged, in_doubt, round, revision, holder, held_until,
    cancel_requested_at, evidence, provider, provider_message_id, failure, duration_ms, finished_at, tenant,
    kind = 'email:send' AS is_email, created_at
FROM messages
WHERE no > (:after ->> 0)
ORDER BY no;
