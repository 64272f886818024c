-- Drops idempotency keys of a tenant. :tenant; :limit
DELETE FROM idempotency_keys
WHERE tenant = :tenant AND key IN (SELECT k.key FROM idempotency_keys AS k WHERE k.tenant = :tenant LIMIT :limit);
