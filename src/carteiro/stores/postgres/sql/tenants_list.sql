-- The next tenants by id, after a given one. $1 after; $2 limit
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM carteiro.tenants
WHERE id > $1::text
ORDER BY id
LIMIT $2::bigint;
