-- Creates or changes a tenant.
-- :id; :name; :tier; :weight; :stride; :cap; :rate_per_second; :paused; :next_token_us; :now
INSERT INTO tenants (id, name, tier, weight, stride, cap, rate_per_second, paused, next_token_us, created_at)
VALUES (:id, :name, :tier, :weight, :stride, :cap, :rate_per_second, :paused, :next_token_us, :now)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, tier = excluded.tier, weight = excluded.weight, stride = excluded.stride,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, paused = excluded.paused,
    next_token_us = excluded.next_token_us;
