-- name: automatic_providers
-- The providers that dead letters wait for: a probe of the index each.
WITH RECURSIVE p (name) AS (
    SELECT (
        SELECT min(d.waits_for) FROM carteiro.dead_letters AS d
        WHERE d.waits_for IS NOT NULL AND d.redriven_at IS NULL
    )
    UNION ALL
    SELECT (
        SELECT min(d.waits_for) FROM carteiro.dead_letters AS d
        WHERE d.waits_for > p.name AND d.waits_for IS NOT NULL AND d.redriven_at IS NULL
    )
    FROM p
    WHERE p.name IS NOT NULL
)
SELECT name FROM p WHERE name IS NOT NULL;

-- name: automatic_open
-- The number of running automatic redrives, and of those of one tenant that are not clean. :tenant
SELECT count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE tenant = :tenant)
FROM carteiro.redrives
WHERE NOT is_clean AND provider IS NOT NULL;

-- name: automatic_ripe (sqlite)
-- The next tenants with dead letters that have cooled down, and without an automatic redrive, a probe of the index each.
-- :provider; :after; :starts = [[rounds, latest start of the cool-down], …]; :limit
WITH RECURSIVE t (id) AS (
    SELECT (
        SELECT min(d.tenant) FROM dead_letters AS d
        WHERE d.waits_for = :provider AND d.tenant > :after AND d.redriven_at IS NULL
    )
    UNION ALL
    SELECT (
        SELECT min(d.tenant) FROM dead_letters AS d
        WHERE d.waits_for = :provider AND d.tenant > t.id AND d.redriven_at IS NULL
    )
    FROM t
    WHERE t.id IS NOT NULL
)
SELECT t.id
FROM t
WHERE
    t.id IS NOT NULL
    AND EXISTS (
        SELECT 1 FROM json_each(:starts) AS s CROSS JOIN dead_letters AS d INDEXED BY dead_letters_waiting
        WHERE
            d.waits_for = :provider AND d.tenant = t.id AND d.automatic_rounds = s.value ->> 0
            AND d.waits_since <= s.value ->> 1 AND d.redriven_at IS NULL
    )
    AND NOT EXISTS (SELECT 1 FROM tenants AS n WHERE n.id = t.id AND (n.paused OR n.disabled))
    AND NOT EXISTS (
        SELECT 1 FROM redrives AS r WHERE NOT r.is_clean AND r.provider IS NOT NULL AND r.tenant = t.id
    )
LIMIT :limit;

-- name: automatic_ripe (postgres)
-- The next tenants with dead letters that have cooled down, and without an automatic redrive, a probe of the index each.
-- :provider; :after; :starts = [[rounds, latest start of the cool-down], …]; :limit
WITH RECURSIVE t (id) AS (
    SELECT (
        SELECT min(d.tenant) FROM carteiro.dead_letters AS d
        WHERE d.waits_for = :provider::text AND d.tenant > :after::text AND d.redriven_at IS NULL
    )
    UNION ALL
    SELECT (
        SELECT min(d.tenant) FROM carteiro.dead_letters AS d
        WHERE d.waits_for = :provider::text AND d.tenant > t.id AND d.redriven_at IS NULL
    )
    FROM t
    WHERE t.id IS NOT NULL
)
SELECT t.id
FROM t
WHERE
    t.id IS NOT NULL
    AND EXISTS (
        SELECT
        FROM unnest(:starts_0::integer[], :starts_1::bigint[]) AS s (rounds, latest)
        CROSS JOIN LATERAL (
            SELECT FROM carteiro.dead_letters AS d
            WHERE
                d.waits_for = :provider::text AND d.tenant = t.id AND d.automatic_rounds = s.rounds
                AND d.waits_since <= s.latest AND d.redriven_at IS NULL
            LIMIT 1
        ) AS d
    )
    AND NOT EXISTS (SELECT FROM carteiro.tenants AS n WHERE n.id = t.id AND (n.paused OR n.disabled))
    AND NOT EXISTS (
        SELECT FROM carteiro.redrives AS r WHERE NOT r.is_clean AND r.provider IS NOT NULL AND r.tenant = t.id
    )
LIMIT :limit;

-- name: automatic_due (sqlite)
-- Dead letters of a tenant that have cooled down, longest waiting first of each number of rounds, and whether they may be
-- redriven: they have not expired or been in doubt, have a round and their content left, and their tenant and template type
-- allow it. None while the tenant is held.
-- :provider; :tenant; :starts = [[rounds, latest start of the cool-down], …]; :rounds; :now; :limit
SELECT
    d.message_id,
    d.automatic_rounds < :rounds AND e.state = 'FAILED' AND e.expires_at > :now AND NOT e.in_doubt
    AND e.cancel_requested_at IS NULL
    AND EXISTS (SELECT 1 FROM contents AS c WHERE c.message_no = m.no)
    AND coalesce((SELECT n.automatic_redrive FROM tenants AS n WHERE n.id = d.tenant), 1)
    AND coalesce((
        SELECT p.automatic_redrive FROM templates AS p
        WHERE p.tenant = m.tenant AND p.type = m.template_type
        ORDER BY p.version DESC
        LIMIT 1
    ), 1) AS is_fit
FROM json_each(:starts) AS s
CROSS JOIN dead_letters AS d INDEXED BY dead_letters_waiting
LEFT JOIN messages AS m ON m.id = d.message_id
LEFT JOIN entries AS e ON e.message_no = m.no
WHERE
    d.waits_for = :provider AND d.tenant = :tenant AND d.automatic_rounds = s.value ->> 0
    AND d.waits_since <= s.value ->> 1 AND d.redriven_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM tenants AS n WHERE n.id = :tenant AND (n.paused OR n.disabled))
LIMIT :limit;

-- name: automatic_due (postgres)
-- Dead letters of a tenant that have cooled down, longest waiting first of each number of rounds, and whether they may be
-- redriven: they have not expired or been in doubt, have a round and their content left, and their tenant and template type
-- allow it. None while the tenant is held.
-- :provider; :tenant; :starts = [[rounds, latest start of the cool-down], …]; :rounds; :now; :limit
SELECT
    d.message_id,
    coalesce(
        d.automatic_rounds < :rounds::integer AND e.state = 'FAILED' AND e.expires_at > :now::bigint AND e.in_doubt = 0
        AND e.cancel_requested_at IS NULL AND m.content IS NOT NULL
        AND coalesce((SELECT n.automatic_redrive FROM carteiro.tenants AS n WHERE n.id = d.tenant), true)
        AND coalesce((
            SELECT p.automatic_redrive FROM carteiro.templates AS p
            WHERE p.tenant = m.tenant AND p.type = m.template_type
            ORDER BY p.version DESC
            LIMIT 1
        ), true),
        false
    ) AS is_fit
FROM unnest(:starts_0::integer[], :starts_1::bigint[]) WITH ORDINALITY AS s (rounds, latest, place)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.dead_letters AS n
    WHERE
        n.waits_for = :provider::text AND n.tenant = :tenant::text AND n.automatic_rounds = s.rounds
        AND n.waits_since <= s.latest AND n.redriven_at IS NULL
    ORDER BY n.waits_since, n.message_id
    LIMIT :limit::bigint
) AS d
LEFT JOIN LATERAL (SELECT * FROM carteiro.messages AS n WHERE n.id = d.message_id LIMIT 1) AS m ON true
LEFT JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no LIMIT 1) AS e ON true
WHERE NOT EXISTS (SELECT FROM carteiro.tenants AS n WHERE n.id = :tenant::text AND (n.paused OR n.disabled))
ORDER BY s.place, d.waits_since, d.message_id
LIMIT :limit::bigint;

-- name: automatic_total (sqlite)
-- The number of dead letters of a tenant that have cooled down. :provider; :tenant; :starts = [[rounds, latest start], …]
SELECT count(*)
FROM json_each(:starts) AS s CROSS JOIN dead_letters AS d INDEXED BY dead_letters_waiting
WHERE
    d.waits_for = :provider AND d.tenant = :tenant AND d.automatic_rounds = s.value ->> 0
    AND d.waits_since <= s.value ->> 1 AND d.redriven_at IS NULL;

-- name: automatic_total (postgres)
-- The number of dead letters of a tenant that have cooled down. :provider; :tenant; :starts = [[rounds, latest start], …]
SELECT count(*)
FROM unnest(:starts_0::integer[], :starts_1::bigint[]) AS s (rounds, latest)
JOIN carteiro.dead_letters AS d
    ON d.waits_for = :provider::text AND d.tenant = :tenant::text AND d.automatic_rounds = s.rounds
    AND d.waits_since <= s.latest AND d.redriven_at IS NULL;

-- name: automatic_dismiss (sqlite)
-- Lets dead letters wait no more, unless they were redriven. :ids = [message id, …]
UPDATE dead_letters SET waits_for = NULL
WHERE message_id IN (SELECT value FROM json_each(:ids)) AND redriven_at IS NULL;

-- name: automatic_dismiss (postgres)
-- Lets dead letters wait no more, unless they were redriven. :ids = [message id, …]
UPDATE carteiro.dead_letters SET waits_for = NULL
WHERE
    message_id = ANY (ARRAY(
        SELECT n.message_id FROM carteiro.dead_letters AS n
        WHERE n.message_id = ANY (:ids::text[])
        ORDER BY n.message_id
        FOR UPDATE
    ))
    AND redriven_at IS NULL;

-- name: automatic_postpone (sqlite)
-- Counts a round for dead letters that cool down from now on, unless they do so already or were redriven; after the last
-- round they wait no more. :ids = [message id, …]; :started, when their redrive began; :now, later than that; :rounds
UPDATE dead_letters
SET automatic_rounds = automatic_rounds + 1, waits_since = :now,
    waits_for = CASE WHEN automatic_rounds + 1 < :rounds THEN waits_for END
WHERE message_id IN (SELECT value FROM json_each(:ids)) AND redriven_at IS NULL AND waits_since <= :started;

-- name: automatic_postpone (postgres)
-- Counts a round for dead letters that cool down from now on, unless they do so already or were redriven; after the last
-- round they wait no more. :ids = [message id, …]; :started, when their redrive began; :now, later than that; :rounds
UPDATE carteiro.dead_letters
SET automatic_rounds = automatic_rounds + 1, waits_since = :now,
    waits_for = CASE WHEN automatic_rounds + 1 < :rounds::integer THEN waits_for END
WHERE
    message_id = ANY (ARRAY(
        SELECT n.message_id FROM carteiro.dead_letters AS n
        WHERE n.message_id = ANY (:ids::text[])
        ORDER BY n.message_id
        FOR UPDATE
    ))
    AND redriven_at IS NULL AND waits_since <= :started;

-- name: automatic_left (sqlite)
-- Dead letters of a tenant that have cooled down, also while it is held.
-- :provider; :tenant; :starts = [[rounds, latest start of the cool-down], …]; :limit
SELECT d.message_id
FROM json_each(:starts) AS s CROSS JOIN dead_letters AS d INDEXED BY dead_letters_waiting
WHERE
    d.waits_for = :provider AND d.tenant = :tenant AND d.automatic_rounds = s.value ->> 0
    AND d.waits_since <= s.value ->> 1 AND d.redriven_at IS NULL
LIMIT :limit;

-- name: automatic_left (postgres)
-- Dead letters of a tenant that have cooled down, also while it is held.
-- :provider; :tenant; :starts = [[rounds, latest start of the cool-down], …]; :limit
SELECT d.message_id
FROM unnest(:starts_0::integer[], :starts_1::bigint[]) AS s (rounds, latest)
CROSS JOIN LATERAL (
    SELECT n.message_id FROM carteiro.dead_letters AS n
    WHERE
        n.waits_for = :provider::text AND n.tenant = :tenant::text AND n.automatic_rounds = s.rounds
        AND n.waits_since <= s.latest AND n.redriven_at IS NULL
    LIMIT :limit::bigint
) AS d
LIMIT :limit::bigint;
