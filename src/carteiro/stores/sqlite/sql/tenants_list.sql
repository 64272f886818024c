-- The next tenants by id, after a given one. :after; :limit
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM tenants
WHERE id > :after
ORDER BY id
LIMIT :limit;
