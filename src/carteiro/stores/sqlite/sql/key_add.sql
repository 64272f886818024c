-- Lets a key speak for a tenant; a known key stays with its tenant. :key_hash; :tenant; :now
INSERT INTO tenant_keys (key_hash, tenant, created_at)
VALUES (:key_hash, :tenant, :now)
ON CONFLICT (key_hash) DO NOTHING;
