-- Drops what became of messages: their numbers, due times and whether they have a job. $1 message numbers
DELETE FROM carteiro.entries
WHERE message_no = ANY ($1::bigint[])
RETURNING message_no, due_at, finished_at IS NULL;
