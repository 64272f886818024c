-- The next suppressions. :after = [tenant, key, reason]
SELECT tenant, key, reason, address, created_at, expires_at, is_active, bounces
FROM suppressions
WHERE (tenant, key, reason) > (:after ->> 0, :after ->> 1, :after ->> 2)
ORDER BY tenant, key, reason;
