-- The next tenants. :after = [id]
SELECT
    id, name, tier, weight, stride, cap, rate_per_second, paused, disabled, default_from, from_domains,
    allowed_networks, limits, retry_preset, external_id_is_key, next_token_us, created_at
FROM tenants
WHERE id > (:after ->> 0)
ORDER BY id;
