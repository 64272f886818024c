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
