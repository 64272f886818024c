-- The tenants with these ids. $1 ids
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM carteiro.tenants
WHERE id = ANY ($1::text[]);
