-- name: domains_claim
-- Domains that nobody has claimed become these tenants'. The caller holds the lock of the ring. Arrays: $1 domains; $2 tenants
INSERT INTO carteiro.sender_domains (domain, tenant)
SELECT c.domain, c.tenant
FROM unnest($1::text[], $2::text[]) AS c (domain, tenant);

-- name: domains_find
-- The tenants that claimed these domains. $1 domains
SELECT domain, tenant
FROM carteiro.sender_domains
WHERE domain = ANY ($1::text[])
ORDER BY domain;

-- name: domains_release
-- These tenants claim no domain any more. The caller holds the lock of the ring. $1 tenants
DELETE FROM carteiro.sender_domains
WHERE tenant = ANY ($1::text[]);

-- name: limit_kind
-- Sets or lifts the send limit of a kind; another limit counts what was drawn from the last. The caller holds the lock of the ring.
-- $1 kind; $2 count; $3 per, in milliseconds
WITH new AS (
    INSERT INTO carteiro.ring_clock (kind, limit_count, limit_per_ms)
    SELECT $1::text, $2::bigint, $3::bigint
    WHERE NOT EXISTS (SELECT FROM carteiro.ring_clock AS c WHERE c.kind = $1::text)
)
UPDATE carteiro.ring_clock AS c
SET n = c.n + 1, limit_count = $2::bigint, limit_per_ms = $3::bigint,
    draws = CASE WHEN $2::bigint IS NULL THEN '[]' ELSE c.draws END
WHERE c.kind = $1::text AND (c.limit_count IS DISTINCT FROM $2::bigint OR c.limit_per_ms IS DISTINCT FROM $3::bigint);

-- name: standings
-- How the tenants of a kind fare, least virtual time first; what claim has not read yet is counted. $1 kind; $2 now;
-- $3 longest hold
SELECT
    coalesce(s.tenant, n.tenant), s.last_processed_at, coalesce(c.turn, 0),
    CASE WHEN s.tenant IS NOT NULL AND s.wake_at IS NULL THEN greatest(s.last_turn, s.since_turn) END,
    coalesce(s.processed, 0), coalesce(s.consecutive, 0), coalesce(s.jobs, 0) + coalesce(n.jobs, 0),
    coalesce(f.jobs, 0),
    (SELECT count(*) FROM carteiro.seats AS r WHERE r.kind = $1::text AND r.wake_at IS NULL)
FROM (SELECT * FROM carteiro.seats WHERE kind = $1::text) AS s
FULL JOIN (
    SELECT u.tenant, sum(u.jobs)::bigint AS jobs
    FROM carteiro.unseen_notes() AS u JOIN carteiro.tenants AS t ON t.id = u.tenant
    WHERE u.kind = $1::text
    GROUP BY u.tenant
) AS n ON n.tenant = s.tenant
LEFT JOIN (
    SELECT l.tenant, count(*) AS jobs
    FROM carteiro.leased AS l
    WHERE
        l.kind = $1::text AND l.parked_until > $2::bigint AND l.parked_until <= $2::bigint + $3::bigint
    GROUP BY l.tenant
) AS f ON f.tenant = coalesce(s.tenant, n.tenant)
LEFT JOIN carteiro.ring_clock AS c ON c.kind = $1::text
ORDER BY coalesce(s.vt, 0), coalesce(s.last_turn, 0), coalesce(s.tenant, n.tenant);

-- name: tenant_lock
-- Holds a tenant until the transaction ends: what is counted of it stays so. Sends of it go on. $1 tenant
SELECT 1 FROM carteiro.tenants
WHERE id = $1::text
FOR NO KEY UPDATE;

-- name: tenants_define
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

-- name: tenants_ensure
-- Creates the tenants that are missing; known ones stay as they are. $1 ids; $2 stride; $3 now
INSERT INTO carteiro.tenants (id, name, stride, paused, created_at)
SELECT id, '', $2::bigint, false, $3::bigint
FROM unnest($1::text[]) AS i (id)
ORDER BY id
ON CONFLICT (id) DO NOTHING;

-- name: tenants_find
-- The tenants with these ids. $1 ids
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM carteiro.tenants
WHERE id = ANY ($1::text[]);

-- name: tenants_list
-- The next tenants by id, after a given one. $1 after; $2 limit
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM carteiro.tenants
WHERE id > $1::text
ORDER BY id
LIMIT $2::bigint;

-- name: tenants_reseat
-- Moves seats; a walk begins before them. The caller holds the lock of the ring.
-- Arrays: $1 kinds; $2 tenants; $3 vt; $4 wake_at, null in the ring
WITH moved AS (
    UPDATE carteiro.seats AS s
    SET n = s.n + 1, vt = m.vt,
        wake_at = CASE WHEN m.wake_at IS NOT NULL THEN greatest(
            m.wake_at, (SELECT c.seen_at - 1000 FROM carteiro.ring_clock AS c WHERE c.kind = m.kind)
        ) END
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS m (kind, tenant, vt, wake_at)
    WHERE s.kind = m.kind AND s.tenant = m.tenant
    RETURNING s.kind, s.vt
)
UPDATE carteiro.ring_clock AS c
SET n = c.n + 1, least_vt = least(c.least_vt, m.vt)
FROM (SELECT kind, min(vt) AS vt FROM moved GROUP BY kind) AS m
WHERE c.kind = m.kind AND c.least_vt > m.vt;

-- name: tenants_seats
-- The seats of tenants, each with the V of its kind and what a job costs its tenant so far. $1 tenants
SELECT s.kind, s.tenant, s.vt, s.wake_at IS NULL, coalesce(c.v, 0), t.stride
FROM carteiro.seats AS s
JOIN carteiro.tenants AS t ON t.id = s.tenant
LEFT JOIN carteiro.ring_clock AS c ON c.kind = s.kind
WHERE s.tenant = ANY ($1::text[]);

-- name: tier_define
-- Sets the weight of a tier. $1 name; $2 weight
INSERT INTO carteiro.tiers (name, weight)
VALUES ($1::text, $2::double precision)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;

-- name: tier_tenants
-- The tenants that take their weight from a tier. $1 tier
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key
FROM carteiro.tenants
WHERE tier = $1::text AND weight IS NULL;

-- name: tier_weights
-- The weights of tiers. $1 names
SELECT name, weight FROM carteiro.tiers
WHERE name = ANY ($1::text[]);
