-- Drops messages and all that is kept beside them, but dead letters and idempotency keys.
-- $1 message numbers; $2 their ids
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY ($1::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY ($2::text[])),
words AS (DELETE FROM carteiro.contents WHERE message_no = ANY ($1::bigint[])),
timelines AS (DELETE FROM carteiro.events WHERE message_no = ANY ($1::bigint[])),
gone AS (DELETE FROM carteiro.entries WHERE message_no = ANY ($1::bigint[]))
DELETE FROM carteiro.messages
WHERE no = ANY ($1::bigint[]);
