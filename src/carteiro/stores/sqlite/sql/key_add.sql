-- Lets a key speak for a tenant. :key_hash; :tenant; :now
INSERT INTO tenant_keys (key_hash, tenant, created_at)
VALUES (:key_hash, :tenant, :now);
