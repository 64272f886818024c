-- How many messages are unfinished, counted no further than :most.
SELECT count(*)
FROM (SELECT 1 FROM messages INDEXED BY messages_by_expiry WHERE finished_at IS NULL LIMIT :most);
