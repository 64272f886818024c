-- Holds the entries of messages that finished until then, but those that somebody else holds: which.
-- $1 = [number, …]; $2 then
SELECT message_no
FROM carteiro.entries
WHERE message_no = ANY ($1::bigint[]) AND finished_at <= $2
ORDER BY message_no
FOR UPDATE SKIP LOCKED;
