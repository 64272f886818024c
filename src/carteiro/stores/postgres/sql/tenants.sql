-- name: domains_claim
-- Assigns unclaimed domains to these tenants. The caller holds the lock of the ring. :claims = [[domain, tenant], …]
INSERT INTO carteiro.sender_domains (domain, tenant)
SELECT c.domain, c.tenant
FROM unnest(:claims_0::text[], :claims_1::text[]) AS c (domain, tenant);

-- name: domains_find
-- The tenants that claimed these domains. :domains
SELECT domain, tenant
FROM carteiro.sender_domains
WHERE domain = ANY (:domains::text[])
ORDER BY domain;

-- name: domains_release
-- Deletes the domains of these tenants. The caller holds the lock of the ring. :tenants
DELETE FROM carteiro.sender_domains
WHERE tenant = ANY (:tenants::text[]);

-- name: limit_kind
-- Sets or removes the send limit of a kind; a new limit counts the draws from the old one. The caller holds the lock of the ring.
-- :kind; :count; :per_ms
WITH new AS (
    INSERT INTO carteiro.ring_clock (kind, limit_count, limit_per_ms)
    SELECT :kind::text, :count::bigint, :per_ms::bigint
    WHERE NOT EXISTS (SELECT FROM carteiro.ring_clock AS c WHERE c.kind = :kind::text)
)
UPDATE carteiro.ring_clock AS c
SET n = c.n + 1, limit_count = :count::bigint, limit_per_ms = :per_ms::bigint,
    draws = CASE WHEN :count::bigint IS NULL THEN '[]' ELSE c.draws END
WHERE c.kind = :kind::text AND (c.limit_count IS DISTINCT FROM :count::bigint OR c.limit_per_ms IS DISTINCT FROM :per_ms::bigint);

-- name: standings
-- Standings of the tenants of a kind, least virtual time first, with the notes applied. :kind; :now;
-- :longest = the longest hold; :is_all, else of :ids = [id, …]
SELECT
    coalesce(s.tenant, n.tenant), s.last_processed_at, coalesce(c.turn, 0),
    CASE WHEN s.tenant IS NOT NULL AND s.wake_at IS NULL THEN greatest(s.last_turn, s.since_turn) END,
    coalesce(s.processed, 0), coalesce(s.consecutive, 0), coalesce(s.jobs, 0) + coalesce(n.jobs, 0),
    coalesce(f.jobs, 0),
    (SELECT count(*) FROM carteiro.seats AS r WHERE r.kind = :kind::text AND r.wake_at IS NULL)
FROM (SELECT * FROM carteiro.seats WHERE kind = :kind::text) AS s
FULL JOIN (
    SELECT u.tenant, sum(u.jobs)::bigint AS jobs
    FROM (
        SELECT tenant, jobs FROM carteiro.unseen_notes() WHERE kind = :kind::text
        UNION ALL SELECT tenant, jobs FROM carteiro.tallies WHERE kind = :kind::text
    ) AS u
    JOIN carteiro.tenants AS t ON t.id = u.tenant
    GROUP BY u.tenant
) AS n ON n.tenant = s.tenant
LEFT JOIN (
    SELECT l.tenant, sum(CASE
            WHEN l.parked_until > :now::bigint THEN cardinality(l.numbers)
            ELSE (
                SELECT count(*) FROM carteiro.ends_of(l.claim_id, l.numbers, l.parked_until) AS u
                WHERE u.until > :now::bigint AND u.until <= :now::bigint + :longest::bigint
            )
        END)::bigint AS jobs
    FROM carteiro.leased AS l
    WHERE l.kind = :kind::text AND l.parked_until <= :now::bigint + :longest::bigint
    GROUP BY l.tenant
) AS f ON f.tenant = coalesce(s.tenant, n.tenant)
LEFT JOIN carteiro.ring_clock AS c ON c.kind = :kind::text
WHERE :is_all::boolean OR coalesce(s.tenant, n.tenant) = ANY (:ids::text[])
ORDER BY coalesce(s.vt, 0), coalesce(s.last_turn, 0), coalesce(s.tenant, n.tenant);

-- name: tenant_lock
-- Locks a tenant until the transaction ends, so that its counts do not change. Its sends continue. :tenant
SELECT 1 FROM carteiro.tenants
WHERE id = :tenant
FOR NO KEY UPDATE;

-- name: tenants_define
-- Creates or changes tenants, each named once; if the rate does not change, the drawn tokens stay.
-- The caller holds the lock of the ring.
-- :rows = [[id, name, tier, weight, cap, rate per second, paused, disabled, default_from, from_domains, allowed_networks,
-- limits, retry preset, external_id_is_key, contact, automatic_redrive, stride], …]; :now
WITH woken AS ( -- their seats are woken by `tenants_reseat`, except those that claim has still to make of its notes
    INSERT INTO carteiro.notes (kind, tenant, wake_at)
    SELECT DISTINCT n.kind, n.tenant, :now::bigint
    FROM carteiro.unseen_notes() AS n
    WHERE
        n.tenant = ANY (:rows_0::text[]) AND n.kind <> ''
        AND NOT EXISTS (SELECT FROM carteiro.seats AS s WHERE s.kind = n.kind AND s.tenant = n.tenant)
)
INSERT INTO carteiro.tenants AS t (
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key, contact, automatic_redrive, stride, created_at
)
SELECT d.*, :now::bigint
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::double precision[], :rows_4::integer[],
    :rows_5::double precision[], :rows_6::boolean[], :rows_7::boolean[], :rows_8::text[], :rows_9::text[],
    :rows_10::text[], :rows_11::text[], :rows_12::text[], :rows_13::boolean[], :rows_14::text[], :rows_15::boolean[],
    :rows_16::bigint[]
) AS d (id)
ORDER BY d.id
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, tier = excluded.tier, weight = excluded.weight, stride = excluded.stride,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, paused = excluded.paused,
    disabled = excluded.disabled, default_from = excluded.default_from, from_domains = excluded.from_domains,
    allowed_networks = excluded.allowed_networks, limits = excluded.limits, retry_preset = excluded.retry_preset,
    external_id_is_key = excluded.external_id_is_key, contact = excluded.contact,
    automatic_redrive = excluded.automatic_redrive,
    next_token_us = CASE
        WHEN t.rate_per_second IS NOT DISTINCT FROM excluded.rate_per_second THEN t.next_token_us
        ELSE 0
    END;

-- name: tenants_ensure
-- Creates the missing tenants, and returns their ids; known ones do not change. :ids = [id, …]; :stride; :now
INSERT INTO carteiro.tenants (id, name, stride, paused, created_at)
SELECT id, '', :stride::bigint, false, :now::bigint
FROM unnest(:ids::text[]) AS i (id)
ORDER BY id
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: tenants_find
-- The tenants with these ids. :ids = [tenant, …]
SELECT
    id, name, tier, weight, cap, rate_per_second, paused, disabled, default_from, from_domains, allowed_networks,
    limits, retry_preset, external_id_is_key, contact, automatic_redrive
FROM carteiro.tenants
WHERE id = ANY (:ids::text[]);

-- name: tenants_reseat
-- Moves seats; a walk begins before them. The caller holds the lock of the ring.
-- :rows = [[kind, tenant, vt, wake_at, null in the ring], …]
WITH moved AS (
    UPDATE carteiro.seats AS s
    SET n = s.n + 1, vt = m.vt,
        wake_at = CASE WHEN m.wake_at IS NOT NULL THEN greatest(
            m.wake_at, (SELECT c.seen_at - 1000 FROM carteiro.ring_clock AS c WHERE c.kind = m.kind)
        ) END
    FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::bigint[], :rows_3::bigint[]) AS m (kind, tenant, vt, wake_at)
    WHERE s.kind = m.kind AND s.tenant = m.tenant
    RETURNING s.kind, s.vt
)
UPDATE carteiro.ring_clock AS c
SET n = c.n + 1, least_vt = least(c.least_vt, m.vt)
FROM (SELECT kind, min(vt) AS vt FROM moved GROUP BY kind) AS m
WHERE c.kind = m.kind AND c.least_vt > m.vt;

-- name: tenants_seats
-- The seats of tenants, each with the V of its kind and the current cost of a job for its tenant. :tenants = [tenant, …]
SELECT s.kind, s.tenant, s.vt, s.wake_at, coalesce(c.v, 0), t.stride
FROM carteiro.seats AS s
JOIN carteiro.tenants AS t ON t.id = s.tenant
LEFT JOIN carteiro.ring_clock AS c ON c.kind = s.kind
WHERE s.tenant = ANY (:tenants::text[]);

-- name: tier_weights
-- The weights of tiers. :tiers
SELECT name, weight FROM carteiro.tiers
WHERE name = ANY (:tiers::text[]);
