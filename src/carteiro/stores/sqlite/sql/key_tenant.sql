-- The tenant that a key speaks for. :key_hash
SELECT tenant FROM tenant_keys
WHERE key_hash = :key_hash;
