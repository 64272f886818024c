-- Drops messages and all that is kept beside them, but dead letters and idempotency keys.
-- $1 message numbers; $2 their ids; $3 whether events are left that are soon dropped with their whole part
WITH tags AS (DELETE FROM carteiro.message_tags WHERE message_no = ANY ($1::bigint[])),
mails AS (DELETE FROM carteiro.inbox WHERE message_id = ANY ($2::text[])),
words AS (DELETE FROM carteiro.contents WHERE message_no = ANY ($1::bigint[])),
timelines AS (
    DELETE FROM carteiro.events
    WHERE message_no = ANY (ARRAY(
        SELECT n.no FROM unnest($1::bigint[]) AS n (no)
        WHERE NOT $3::boolean OR NOT EXISTS (
            SELECT FROM carteiro.event_parts AS p
            WHERE p.from_no <= n.no AND n.no < p.to_no AND carteiro.is_dropped_whole(p)
        )
    ))
),
gone AS (DELETE FROM carteiro.entries WHERE message_no = ANY ($1::bigint[]))
DELETE FROM carteiro.messages
WHERE no = ANY ($1::bigint[]);
