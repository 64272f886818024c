-- Drops what was written to somebody: contents, tags, the sandbox's mails, and of events all but their types and times.
-- $1 message numbers; $2 their ids
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY ($1::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY ($2::text[])),
words AS (DELETE FROM carteiro.contents WHERE message_no = ANY ($1::bigint[]))
UPDATE carteiro.events
SET metadata = '{}'
WHERE message_no = ANY ($1::bigint[]);
