-- Drops the contents of messages, and what the sandbox kept of them; how many contents. $1 = [number, …]; $2 = [id, …]
WITH mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY ($2::text[])),
gone AS (DELETE FROM carteiro.contents WHERE message_no = ANY ($1::bigint[]) RETURNING 1)
SELECT count(*) FROM gone;
