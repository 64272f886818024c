-- Adds a key. :id; :tenant, null for administrators; :key_hash; :hint; :now; :expires_at
INSERT INTO access_keys (id, tenant, key_hash, hint, created_at, expires_at)
VALUES (:id, :tenant, :key_hash, :hint, :now, :expires_at);
