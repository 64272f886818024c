-- Drops recipients of a tenant, and idempotency keys, mails and suppressions of it; how many recipients.
-- $1 tenant; $2 limit of recipients; $3 limit of each of the others
WITH keys AS (
    DELETE FROM carteiro.idempotency_keys
    WHERE
        tenant = $1::text
        AND key = ANY (ARRAY(
            SELECT k.key FROM carteiro.idempotency_keys AS k WHERE k.tenant = $1::text LIMIT $3::bigint
        ))
),
mails AS (
    DELETE FROM carteiro.inbox
    WHERE id = ANY (ARRAY(
        SELECT i.id FROM carteiro.inbox AS i WHERE i.tenant = $1::text LIMIT $3::bigint
    ))
),
suppressed AS (
    DELETE FROM carteiro.suppressions
    WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM carteiro.suppressions AS s WHERE s.tenant = $1::text LIMIT $3::bigint
    ))
),
people AS (
    DELETE FROM carteiro.recipient_records
    WHERE id = ANY (ARRAY(
        SELECT r.id FROM carteiro.recipient_records AS r WHERE r.tenant = $1::text LIMIT $2::bigint
    ))
    RETURNING id
)
SELECT count(*) FROM people;
