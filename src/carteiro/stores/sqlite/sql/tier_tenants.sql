-- The tenants that take their weight from a tier. :tier
SELECT id, name, tier, weight, cap, rate_per_second, paused
FROM tenants
WHERE tier = :tier AND weight IS NULL;
