-- name: audit_add
-- Adds audit rows, except known ones. :rows = [[id, at, via, who, key_id, origin, action, kind, object, tenant, before, after], …]
INSERT INTO carteiro.audit ({audit})
SELECT r.*
FROM unnest(
    :rows_0::text[], :rows_1::bigint[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[],
    :rows_6::text[], :rows_7::text[], :rows_8::text[], :rows_9::text[], :rows_10::text[], :rows_11::text[]
) AS r ({audit})
ON CONFLICT (id) DO NOTHING;

-- name: prune_audit
-- Deletes audit rows past their retention, oldest first. :before; :limit
DELETE FROM carteiro.audit
WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM carteiro.audit AS a
    WHERE a.at <= :before
    ORDER BY a.at, a.id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
));
