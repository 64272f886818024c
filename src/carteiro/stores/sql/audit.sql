-- name: audit_list
-- The next rows, newest first. :at and :id of the last one; :since; :limit; the others null for any
SELECT {audit}
FROM carteiro.audit
WHERE (at, id) < (:at, :id) AND {audit_wanted}
ORDER BY at DESC, id DESC
LIMIT :limit;

-- name: audit_list_by_who
-- The next rows of one actor, newest first. As above
SELECT {audit}
FROM carteiro.audit
WHERE who = :who AND (at, id) < (:at, :id) AND {audit_wanted}
ORDER BY at DESC, id DESC
LIMIT :limit;

-- name: audit_list_of_object
-- The next rows about one object, newest first. As above
SELECT {audit}
FROM carteiro.audit
WHERE object = :object AND (at, id) < (:at, :id) AND {audit_wanted}
ORDER BY at DESC, id DESC
LIMIT :limit;

-- name: audit_begin
-- When the tenant was created. :tenant
SELECT created_at FROM carteiro.tenants WHERE id = :tenant;

-- name: audit_list_of_tenant
-- The next rows about one tenant, newest first. As above
SELECT {audit}
FROM carteiro.audit
WHERE tenant = :tenant AND (at, id) < (:at, :id) AND {audit_wanted}
ORDER BY at DESC, id DESC
LIMIT :limit;

-- name: audit_add (sqlite)
-- Adds audit rows, except known ones. :rows = [[id, at, via, who, key_id, origin, action, kind, object, tenant, before, after], …]
INSERT INTO audit ({audit})
SELECT
    r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
    r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11
FROM json_each(:rows) AS r
WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: audit_add (postgres)
-- Adds audit rows, except known ones. :rows = [[id, at, via, who, key_id, origin, action, kind, object, tenant, before, after], …]
INSERT INTO carteiro.audit ({audit})
SELECT r.*
FROM unnest(
    :rows_0::text[], :rows_1::bigint[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[],
    :rows_6::text[], :rows_7::text[], :rows_8::text[], :rows_9::text[], :rows_10::text[], :rows_11::text[]
) AS r ({audit})
ON CONFLICT (id) DO NOTHING;

-- name: prune_audit (sqlite)
-- Deletes audit rows past their retention, oldest first. :before; :limit
DELETE FROM audit
WHERE id IN (SELECT id FROM audit WHERE at <= :before ORDER BY at, id LIMIT :limit);

-- name: prune_audit (postgres)
-- Deletes audit rows past their retention, oldest first. :before; :limit
DELETE FROM carteiro.audit
WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM carteiro.audit AS a
    WHERE a.at <= :before
    ORDER BY a.at, a.id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
));
