-- Drops idempotency keys that stand for nothing any more, oldest first. :before; :limit
DELETE FROM idempotency_keys
WHERE (tenant, key) IN (
    SELECT tenant, key FROM idempotency_keys
    WHERE created_at <= :before
    ORDER BY created_at
    LIMIT :limit
);
