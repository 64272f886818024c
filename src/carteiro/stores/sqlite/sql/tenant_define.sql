-- Creates or changes a tenant.
-- :id; :name; :tier; :weight; :stride; :cap; :rate_per_second; :paused; :disabled; :default_from; :from_domains;
-- :allowed_networks; :limits; :retry_preset; :external_id_is_key; :next_token_us; :now
INSERT INTO tenants (
    id, name, tier, weight, stride, cap, rate_per_second, paused, disabled, default_from, from_domains,
    allowed_networks, limits, retry_preset, external_id_is_key, next_token_us, created_at
)
VALUES (
    :id, :name, :tier, :weight, :stride, :cap, :rate_per_second, :paused, :disabled, :default_from, :from_domains,
    :allowed_networks, :limits, :retry_preset, :external_id_is_key, :next_token_us, :now
)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, tier = excluded.tier, weight = excluded.weight, stride = excluded.stride,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, paused = excluded.paused,
    disabled = excluded.disabled, default_from = excluded.default_from, from_domains = excluded.from_domains,
    allowed_networks = excluded.allowed_networks, limits = excluded.limits, retry_preset = excluded.retry_preset,
    external_id_is_key = excluded.external_id_is_key, next_token_us = excluded.next_token_us;
