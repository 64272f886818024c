-- name: sign_in_add
-- Signs somebody in. :secret_hash; :key_id, or null; :who; :now; :expires_at
INSERT INTO carteiro.sign_ins (secret_hash, key_id, who, created_at, expires_at)
VALUES (:secret_hash, :key_id, :who, :now, :expires_at);

-- name: sign_ins_prune
-- Deletes those that are over. :now
DELETE FROM carteiro.sign_ins
WHERE expires_at <= :now;

-- name: sign_ins_trim
-- Deletes the oldest of a token above the limit. :key_id, null for those of one-time links; :most
DELETE FROM carteiro.sign_ins
WHERE secret_hash IN (
    SELECT s.secret_hash
    FROM carteiro.sign_ins AS s
    WHERE coalesce(s.key_id, '') = coalesce(:key_id::text, '')
    ORDER BY s.created_at DESC, s.secret_hash
    LIMIT 1000 OFFSET :most
);

-- name: sign_in_find
-- The live sign-in with this hash, with its token, which has to be live, too. :secret_hash; :now
SELECT s.who, s.expires_at,
    k.id, k.tenant, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.name, k.role
FROM carteiro.sign_ins AS s
LEFT JOIN carteiro.access_keys AS k ON k.id = s.key_id
WHERE
    s.secret_hash = :secret_hash AND s.expires_at > :now
    AND (
        s.key_id IS NULL
        OR (
            k.id IS NOT NULL AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > :now)
            AND (k.tenant IS NULL OR (SELECT NOT t.disabled FROM carteiro.tenants AS t WHERE t.id = k.tenant))
        )
    );

-- name: sign_in_end
-- Signs somebody out. :secret_hash
DELETE FROM carteiro.sign_ins
WHERE secret_hash = :secret_hash;
