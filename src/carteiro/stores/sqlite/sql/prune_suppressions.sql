-- Drops suppressions that are over, the longest first. :now; :limit
DELETE FROM suppressions
WHERE (tenant, key, reason) IN (
    SELECT tenant, key, reason FROM suppressions
    WHERE expires_at <= :now
    ORDER BY expires_at
    LIMIT :limit
);
