-- Adds a key, unless one with its hash is known. $1 id; $2 tenant, null for administrators; $3 hash; $4 hint; $5 now;
-- $6 expires_at
INSERT INTO carteiro.access_keys (id, tenant, key_hash, hint, created_at, expires_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint)
ON CONFLICT (key_hash) DO NOTHING;
