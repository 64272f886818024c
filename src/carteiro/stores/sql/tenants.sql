-- name: tenants_list
-- The next tenants by id, after a given one. :after; :limit
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key, contact, automatic_redrive
FROM carteiro.tenants
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: tier_define
-- Sets the weight of a tier. :name; :weight
INSERT INTO carteiro.tiers (name, weight)
VALUES (:name, :weight)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;

-- name: tier_tenants
-- The tenants that take their weight from a tier. :tier
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key, contact, automatic_redrive
FROM carteiro.tenants
WHERE tier = :tier AND weight IS NULL;

-- name: limits
-- The limits that all claims of a kind share.
SELECT kind, limit_count, limit_per_ms
FROM carteiro.ring_clock
WHERE limit_count IS NOT NULL;

-- name: shares_all
-- The shares of the next tenants, by id. :after; :limit
SELECT id, stride, cap, rate_per_second, paused OR disabled
FROM carteiro.tenants
WHERE id > :after::text
ORDER BY id
LIMIT :limit;
