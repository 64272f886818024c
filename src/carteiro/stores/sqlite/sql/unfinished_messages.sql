-- How many messages are unfinished, of all tenants, counted up to a little more than a short queue has.
SELECT count(*)
FROM (SELECT 1 FROM messages INDEXED BY messages_by_expiry WHERE finished_at IS NULL LIMIT 20000);
