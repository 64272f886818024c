-- name: audit_add
-- Adds audit rows, except known ones. :rows = [[id, at, via, who, key_id, origin, action, kind, object, tenant, before, after], …]
INSERT INTO audit ({audit})
SELECT
    r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
    r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11
FROM json_each(:rows) AS r
WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: prune_audit
-- Deletes audit rows past their retention, oldest first. :before; :limit
DELETE FROM audit
WHERE id IN (SELECT id FROM audit WHERE at <= :before ORDER BY at, id LIMIT :limit);
