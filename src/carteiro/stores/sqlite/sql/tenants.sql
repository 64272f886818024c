-- name: domains_claim
-- Assigns unclaimed domains to these tenants. :claims = [[domain, tenant], ...]
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
-- Deletes the domains of these tenants. :tenants
DELETE FROM sender_domains
WHERE tenant IN (SELECT value FROM json_each(:tenants));

-- name: limit_kind
-- Sets or removes the send limit of a kind; a new limit counts the draws from the old one. :kind; :count; :per_ms
INSERT INTO ring_clock (kind, limit_count, limit_per_ms)
VALUES (:kind, :count, :per_ms)
ON CONFLICT (kind) DO UPDATE
SET limit_count = excluded.limit_count, limit_per_ms = excluded.limit_per_ms,
    draws = iif(excluded.limit_count IS NULL, '[]', draws)
WHERE limit_count IS NOT excluded.limit_count OR limit_per_ms IS NOT excluded.limit_per_ms;

-- name: standings
-- Standings of the tenants of a kind, least virtual time first. :kind; :now; :longest; :is_all, else of :ids = [id, …]
SELECT
    s.tenant, s.last_processed_at, coalesce(c.turn, 0),
    iif(s.wake_at IS NULL, max(s.last_turn, s.since_turn), NULL), s.processed, s.consecutive, s.jobs,
    (SELECT count(*) FROM leased AS l WHERE l.seat = s.no AND l.until > :now AND l.until <= :now + :longest),
    (SELECT count(*) FROM seats AS r WHERE r.kind = :kind AND r.wake_at IS NULL)
FROM seats AS s LEFT JOIN ring_clock AS c ON c.kind = s.kind
WHERE s.kind = :kind AND (:is_all OR s.tenant IN (SELECT value FROM json_each(:ids)))
ORDER BY s.vt, s.last_turn, s.tenant;

-- name: tenants_ensure
-- Creates the missing tenants, and returns their ids; known ones do not change. :ids = [id, …]; :stride; :now
INSERT INTO tenants (id, name, stride, paused, created_at)
SELECT value, '', :stride, 0, :now
FROM json_each(:ids)
WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: tenants_find
-- The tenants with these ids. :ids = [id, …]
SELECT
    t.id, t.name, t.tier, t.weight, t.cap, t.rate_per_second, t.paused, t.disabled, t.default_from, t.from_domains,
    t.allowed_networks, t.limits, t.retry_preset, t.external_id_is_key, t.contact, t.automatic_redrive
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;

-- name: tenants_define
-- Creates or changes tenants, each named once; if the rate does not change, the drawn tokens stay.
-- :rows = [[id, name, tier, weight, cap, rate per second, paused, disabled, default_from, from_domains, allowed_networks,
-- limits, retry preset, external_id_is_key, contact, automatic_redrive, stride], …]; :now
INSERT INTO tenants (
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key, contact, automatic_redrive, stride, created_at
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16,
    :now
FROM json_each(:rows)
WHERE true
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, tier = excluded.tier, weight = excluded.weight, stride = excluded.stride,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, paused = excluded.paused,
    disabled = excluded.disabled, default_from = excluded.default_from, from_domains = excluded.from_domains,
    allowed_networks = excluded.allowed_networks, limits = excluded.limits, retry_preset = excluded.retry_preset,
    external_id_is_key = excluded.external_id_is_key, contact = excluded.contact,
    automatic_redrive = excluded.automatic_redrive,
    next_token_us = iif(rate_per_second IS excluded.rate_per_second, next_token_us, 0);

-- name: tenants_reseat
-- Moves seats. :rows = [[kind, tenant, vt, wake_at, null in the ring], …]
UPDATE seats
SET vt = m.value ->> 2, wake_at = m.value ->> 3
FROM json_each(:rows) AS m
WHERE seats.kind = m.value ->> 0 AND seats.tenant = m.value ->> 1;

-- name: tenants_seats
-- The seats of tenants, each with the V of its kind and the current cost of a job for its tenant. :tenants = [id, …]
SELECT s.kind, s.tenant, s.vt, s.wake_at, coalesce(c.v, 0), t.stride
FROM json_each(:tenants) AS i
JOIN tenants AS t ON t.id = i.value
JOIN seats AS s ON s.tenant = t.id
LEFT JOIN ring_clock AS c ON c.kind = s.kind;

-- name: tier_weights
-- The weights of tiers. :tiers
SELECT name, weight
FROM tiers
WHERE name IN (SELECT value FROM json_each(:tiers));
