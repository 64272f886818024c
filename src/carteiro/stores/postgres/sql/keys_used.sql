-- Notes when keys were used last. $1 ids; $2 now
WITH held AS (
    SELECT id FROM carteiro.access_keys
    WHERE id = ANY ($1::text[])
    ORDER BY id
    FOR NO KEY UPDATE
)
UPDATE carteiro.access_keys
SET last_used_at = $2::bigint
WHERE id = ANY (ARRAY(SELECT held.id FROM held));
