-- name: domains_claim
-- Domains that nobody has claimed become these tenants'. :claims = [[domain, tenant], ...]
INSERT INTO sender_domains (domain, tenant)
SELECT value ->> 0, value ->> 1
FROM json_each(:claims);

-- name: domains_find
-- The tenants that claimed these domains. :domains
SELECT domain, tenant
FROM sender_domains
WHERE domain IN (SELECT value FROM json_each(:domains))
ORDER BY domain;

-- name: domains_release
-- These tenants claim no domain any more. :tenants
DELETE FROM sender_domains
WHERE tenant IN (SELECT value FROM json_each(:tenants));

-- name: limit_kind
-- Sets or lifts the send limit of a kind; another limit counts what was drawn from the last. :kind; :count; :per_ms
INSERT INTO ring_clock (kind, limit_count, limit_per_ms)
VALUES (:kind, :count, :per_ms)
ON CONFLICT (kind) DO UPDATE
SET limit_count = excluded.limit_count, limit_per_ms = excluded.limit_per_ms,
    draws = iif(excluded.limit_count IS NULL, '[]', draws)
WHERE limit_count IS NOT excluded.limit_count OR limit_per_ms IS NOT excluded.limit_per_ms;

-- name: standings
-- How the tenants of a kind fare, least virtual time first. :kind; :now; :longest
SELECT
    s.tenant, s.last_processed_at, coalesce(c.turn, 0),
    iif(s.wake_at IS NULL, max(s.last_turn, s.since_turn), NULL), s.processed, s.consecutive, s.jobs,
    (
        SELECT count(*) FROM parked AS p
        WHERE
            p.tenant = s.tenant AND p.is_claimed = 1 AND p.kind = s.kind
            AND p.parked_until > :now AND p.parked_until <= :now + :longest
    ),
    (SELECT count(*) FROM seats AS r WHERE r.kind = :kind AND r.wake_at IS NULL)
FROM seats AS s LEFT JOIN ring_clock AS c ON c.kind = s.kind
WHERE s.kind = :kind
ORDER BY s.vt, s.last_turn, s.tenant;

-- name: tenant_before
-- What a change of a tenant starts from. :id
SELECT stride, rate_per_second, next_token_us
FROM tenants
WHERE id = :id;

-- name: tenant_define
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

-- name: tenant_reseat
-- Moves a seat of a tenant. :kind; :tenant; :vt; :wake_at
UPDATE seats
SET vt = :vt, wake_at = :wake_at
WHERE kind = :kind AND tenant = :tenant;

-- name: tenant_seats
-- The seats of a tenant, each with the V of its kind. :tenant
SELECT s.kind, s.vt, s.wake_at IS NULL, coalesce(c.v, 0)
FROM seats AS s LEFT JOIN ring_clock AS c ON c.kind = s.kind
WHERE s.tenant = :tenant;

-- name: tenants_ensure
-- Creates the tenants that are missing; known ones stay as they are. :ids = [id, …]; :stride; :now
INSERT INTO tenants (id, name, stride, paused, created_at)
SELECT value, '', :stride, 0, :now
FROM json_each(:ids)
WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: tenants_find
-- The tenants with these ids. :ids = [id, …]
SELECT
    t.id, t.name, t.tier, t.weight, t.cap, t.rate_per_second, t.paused, t.disabled, t.default_from, t.from_domains,
    t.allowed_networks, t.limits, t.retry_preset, t.external_id_is_key
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: tenants_list
-- The next tenants by id, after a given one. :after; :limit
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM tenants
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: tier_define
-- Sets the weight of a tier. :name; :weight
INSERT INTO tiers (name, weight)
VALUES (:name, :weight)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;

-- name: tier_tenants
-- The tenants that take their weight from a tier. :tier
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM tenants
WHERE tier = :tier AND weight IS NULL;

-- name: tier_weight
-- The weight of a tier. :tier
SELECT weight FROM tiers
WHERE name = :tier;

-- name: tiers_known
-- Those of the tiers that have a weight. :tiers
SELECT name
FROM tiers
WHERE name IN (SELECT value FROM json_each(:tiers));
