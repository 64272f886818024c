-- Creates or changes tenants, each named once; one whose rate stays as it was keeps the tokens that it has drawn.
-- The caller holds the lock of the ring. Arrays: $1 ids; $2 names; $3 tiers; $4 weights; $5 caps; $6 rates per second;
-- $7 paused; $8 disabled; $9 default_from; $10 from_domains; $11 allowed_networks; $12 limits; $13 retry presets;
-- $14 external_id_is_key; $15 strides; then $16 now
INSERT INTO carteiro.tenants AS t (
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key, stride, created_at
)
SELECT d.*, $16::bigint
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::double precision[], $5::integer[], $6::double precision[],
    $7::boolean[], $8::boolean[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::boolean[],
    $15::bigint[]
) AS d (id)
ORDER BY d.id
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, tier = excluded.tier, weight = excluded.weight, stride = excluded.stride,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, paused = excluded.paused,
    disabled = excluded.disabled, default_from = excluded.default_from, from_domains = excluded.from_domains,
    allowed_networks = excluded.allowed_networks, limits = excluded.limits, retry_preset = excluded.retry_preset,
    external_id_is_key = excluded.external_id_is_key,
    next_token_us = CASE
        WHEN t.rate_per_second IS NOT DISTINCT FROM excluded.rate_per_second THEN t.next_token_us
        ELSE 0
    END;
