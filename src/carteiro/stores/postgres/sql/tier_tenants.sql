-- The tenants that take their weight from a tier. $1 tier
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM carteiro.tenants
WHERE tier = $1::text AND weight IS NULL;
