-- Blocks claims until the transaction ends.
CREATE OR REPLACE FUNCTION carteiro.lock_ring() RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM 1 FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1 FOR UPDATE;
END
$$;

-- The notes that claim has not read yet.
CREATE OR REPLACE FUNCTION carteiro.unseen_notes() RETURNS SETOF carteiro.notes
LANGUAGE sql STABLE
AS $$
    WITH ring AS MATERIALIZED (SELECT r.seen FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1)
    SELECT n.* FROM ring AS r, carteiro.notes AS n WHERE n.xid >= pg_snapshot_xmax(r.seen)
    UNION ALL
    SELECT n.*
    FROM ring AS r, LATERAL pg_snapshot_xip(r.seen) AS open(xid), carteiro.notes AS n
    WHERE n.xid = open.xid
$$;

-- Reads the notes into the ring. The caller holds the ring's lock. One statement: notes are read and marked as
-- read in the same snapshot. No alarm is set earlier than the next claim of its kind looks.
CREATE OR REPLACE FUNCTION carteiro.read_notes(p_jitter bigint) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_ring record;
    v_kinds text[];      -- of the leases that were shortened
    v_lease_end bigint;
BEGIN
    SELECT r.ctid AS place, r.seen, r.folded INTO v_ring FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1;
    WITH unseen AS MATERIALIZED (
        SELECT * FROM carteiro.unseen_notes()
    ),
    told AS (
        SELECT kind, tenant, jobs, wake_at, rank
        FROM unseen
        WHERE kind <> ''
        UNION ALL
        SELECT s.kind, u.tenant, 0, u.wake_at, NULL
        FROM (SELECT n.tenant, min(n.wake_at) AS wake_at FROM unseen AS n WHERE n.kind = '' GROUP BY n.tenant) AS u
        CROSS JOIN LATERAL (
            SELECT o.kind FROM carteiro.seats AS o WHERE o.tenant = u.tenant AND o.wake_at IS NOT NULL OFFSET 0
        ) AS s
    ),
    sums AS (
        SELECT kind, tenant, sum(jobs) AS jobs, min(wake_at) AS wake_at, min(rank) AS rank
        FROM told
        GROUP BY kind, tenant
    ),
    found AS MATERIALIZED (
        SELECT n.kind, n.tenant, n.jobs, n.wake_at, n.rank, s.place,
            greatest(n.wake_at, c.seen_at - p_jitter) AS alarm
        FROM sums AS n
        LEFT JOIN LATERAL (
            SELECT o.seen_at FROM carteiro.ring_clock AS o WHERE o.kind = n.kind ORDER BY o.n DESC LIMIT 1
        ) AS c ON true
        LEFT JOIN LATERAL (
            SELECT o.ctid AS place FROM carteiro.seats AS o
            WHERE o.kind = n.kind AND o.tenant = n.tenant
            ORDER BY o.n DESC LIMIT 1
        ) AS s ON true
    ),
    known AS (
        UPDATE carteiro.seats AS s
        SET n = s.n + 1,
            jobs = s.jobs + f.jobs,
            wake_at = CASE WHEN s.wake_at IS NOT NULL THEN least(s.wake_at, f.alarm) END,
            lowest = least(s.lowest, f.rank),
            due_from = least(s.due_from, f.wake_at)
        FROM found AS f
        WHERE s.ctid = f.place
    ),
    new AS (
        INSERT INTO carteiro.seats (kind, tenant, jobs, wake_at, lowest, due_from)
        SELECT f.kind, f.tenant, f.jobs, f.alarm, coalesce(f.rank, 0), f.wake_at
        FROM found AS f
        WHERE f.place IS NULL AND EXISTS (SELECT FROM carteiro.tenants AS t WHERE t.id = f.tenant)
    ),
    seen AS (
        UPDATE carteiro.ring AS r
        SET n = r.n + 1, seen = pg_current_snapshot(), folded = r.folded + (SELECT count(*) FROM unseen)
        WHERE r.ctid = v_ring.place
    )
    SELECT array_agg(u.kind), min(u.lease_end) INTO v_kinds, v_lease_end FROM unseen AS u WHERE u.lease_end IS NOT NULL;
    IF v_kinds IS NOT NULL THEN
        UPDATE carteiro.ring_clock AS c SET n = c.n + 1, lost_from = least(c.lost_from, v_lease_end) WHERE c.kind = ANY (v_kinds);
    END IF;
    IF v_ring.folded > 5000 THEN
        DELETE FROM carteiro.notes AS n
        WHERE n.xid < pg_snapshot_xmax(v_ring.seen) AND pg_visible_in_snapshot(n.xid, v_ring.seen);
        UPDATE carteiro.ring AS r SET folded = 0
        WHERE r.ctid = (SELECT o.ctid FROM carteiro.ring AS o ORDER BY o.n DESC LIMIT 1);
    END IF;
END
$$;

-- True if the database was restored into another server, where transaction numbers start again: then it is unknown which
-- notes claim has read.
CREATE OR REPLACE FUNCTION carteiro.is_restored() RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT pg_snapshot_xmax(r.seen) > pg_snapshot_xmax(pg_current_snapshot())
    FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1
$$;

-- Rebuilds the ring from the jobs. The caller holds the ring's lock.
CREATE OR REPLACE FUNCTION carteiro.rebuild_ring(p_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM carteiro.notes;
    UPDATE carteiro.ring SET n = n + 1, seen = pg_current_snapshot(), folded = 0;
    UPDATE carteiro.ring_clock SET n = n + 1, least_vt = 0, lost_from = 0, seen_at = 0;
    UPDATE carteiro.seats SET n = n + 1, jobs = 0, wake_at = p_now, lowest = 0, due_from = 0;
    WITH jobs AS MATERIALIZED (
        SELECT j.kind, j.tenant, count(*) AS jobs
        FROM (
            SELECT kind, tenant FROM carteiro.ready
            UNION ALL SELECT kind, tenant FROM carteiro.delayed
            UNION ALL SELECT kind, tenant FROM carteiro.leased
        ) AS j
        GROUP BY j.kind, j.tenant
    ),
    known AS (
        UPDATE carteiro.seats AS s SET jobs = j.jobs
        FROM jobs AS j
        WHERE s.kind = j.kind AND s.tenant = j.tenant
    )
    INSERT INTO carteiro.seats (kind, tenant, jobs, wake_at)
    SELECT j.kind, j.tenant, j.jobs, p_now
    FROM jobs AS j
    WHERE
        NOT EXISTS (SELECT FROM carteiro.seats AS s WHERE s.kind = j.kind AND s.tenant = j.tenant)
        AND EXISTS (SELECT FROM carteiro.tenants AS t WHERE t.id = j.tenant);
END
$$;

-- Makes leased jobs ready if their lease has expired, or ends later than any lease can. The caller holds the ring's lock.
-- `least_rank` is the least rank among them.
CREATE OR REPLACE FUNCTION carteiro.ready_lost(
    p_numbers bigint[], p_longest bigint, p_now bigint, OUT readied integer, OUT least_rank bigint
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    WITH taken AS (
        DELETE FROM carteiro.leased AS l
        WHERE
            l.message_no = ANY (p_numbers) AND (l.parked_until <= p_now OR l.parked_until > p_now + p_longest)
        RETURNING l.tenant, l.kind, l.rank, l.id, l.message_no, l.claims
    ),
    added AS (
        INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no, claims)
        SELECT tenant, kind, rank, id, message_no, claims FROM taken
        ON CONFLICT DO NOTHING
    )
    SELECT count(*), min(rank) INTO readied, least_rank FROM taken;
END
$$;

-- Makes the first due jobs of seats ready, p_limit of each: delayed ones, except those that another transaction is removing, and
-- leased ones whose worker was lost (p_lost_from NULL: those stay). Returns their number. The caller holds the ring's lock.
CREATE OR REPLACE FUNCTION carteiro.ready_due(
    p_kinds text[], p_tenants text[], p_due_from bigint[], p_lost_from bigint[], p_longest bigint, p_now bigint, p_limit integer
) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_due bigint[];
    v_lost bigint[];
    v_readied integer;
BEGIN
    SELECT array_agg(f.message_no) FILTER (WHERE NOT f.is_leased), array_agg(f.message_no) FILTER (WHERE f.is_leased)
    INTO v_due, v_lost
    FROM unnest(p_kinds, p_tenants, p_due_from, p_lost_from) AS s (kind, tenant, due_from, lost_from)
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT * FROM (
                SELECT d.message_no, d.parked_until, d.id, false AS is_leased FROM carteiro.delayed AS d
                WHERE
                    d.tenant = s.tenant AND d.kind = s.kind
                    AND d.parked_until >= s.due_from AND d.parked_until <= p_now
                ORDER BY d.parked_until, d.id LIMIT p_limit
                FOR UPDATE SKIP LOCKED
            ) AS delayed
            UNION ALL
            (
                SELECT l.message_no, l.parked_until, l.id, true FROM carteiro.leased AS l
                WHERE
                    (l.tenant, l.kind, l.parked_until) >= (s.tenant, s.kind, s.lost_from)
                    AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, p_now)
                ORDER BY l.parked_until, l.id LIMIT p_limit
            )
            UNION ALL
            (
                SELECT l.message_no, l.parked_until, l.id, true FROM carteiro.leased AS l
                WHERE
                    s.lost_from IS NOT NULL AND (l.tenant, l.kind, l.parked_until) > (s.tenant, s.kind, p_now + p_longest)
                    AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, 4611686018427387904)
                ORDER BY l.parked_until, l.id LIMIT p_limit
            )
        ) AS all_of_them
        ORDER BY parked_until, id
        LIMIT p_limit
    ) AS f;
    WITH delayed AS (
        DELETE FROM carteiro.delayed AS d WHERE d.message_no = ANY (v_due)
        RETURNING d.kind, d.tenant, d.rank, d.id, d.message_no, d.claims
    ),
    lost AS (
        DELETE FROM carteiro.leased AS l
        WHERE l.message_no = ANY (v_lost) AND (l.parked_until <= p_now OR l.parked_until > p_now + p_longest)
        RETURNING l.kind, l.tenant, l.rank, l.id, l.message_no, l.claims
    ),
    taken AS MATERIALIZED (SELECT * FROM delayed UNION ALL SELECT * FROM lost),
    added AS (
        INSERT INTO carteiro.ready (kind, tenant, rank, id, message_no, claims) SELECT * FROM taken
        ON CONFLICT DO NOTHING
    ),
    lowered AS (
        UPDATE carteiro.seats AS s SET n = s.n + 1, lowest = t.rank
        FROM (SELECT kind, tenant, min(rank) AS rank FROM taken GROUP BY kind, tenant) AS t
        WHERE s.kind = t.kind AND s.tenant = t.tenant AND s.lowest > t.rank
    )
    SELECT count(*) INTO v_readied FROM taken;
    RETURN v_readied;
END
$$;

-- Makes at most p_limit jobs ready whose lease or hold has expired, or ends later than any can. Returns the number.
-- No alarm is set earlier than claim looks: a second before the last time that it saw.
CREATE OR REPLACE FUNCTION carteiro.reap(p_limit integer, p_longest bigint, p_now bigint) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_seat record;
    v_ready record;
    v_count integer := 0;
    v_tenants text[] := '{}';
BEGIN
    PERFORM carteiro.lock_ring();
    FOR v_seat IN
        SELECT
            f.kind, f.tenant, array_agg(f.message_no) AS lost, greatest(p_now, max(f.seen_at) - 1000) AS alarm
        FROM (
            SELECT c.kind, c.seen_at, l.message_no, l.tenant
            FROM carteiro.ring_clock AS c
            CROSS JOIN LATERAL (
                (
                    SELECT e.message_no, e.tenant, e.parked_until, e.id FROM carteiro.leased AS e
                    WHERE e.kind = c.kind AND e.parked_until >= least(c.lost_from, p_now) AND e.parked_until <= p_now
                    ORDER BY e.parked_until, e.id LIMIT p_limit
                )
                UNION ALL
                (
                    SELECT e.message_no, e.tenant, e.parked_until, e.id FROM carteiro.leased AS e
                    WHERE e.kind = c.kind AND e.parked_until > p_now + p_longest
                    ORDER BY e.parked_until, e.id LIMIT p_limit
                )
            ) AS l
            ORDER BY l.parked_until, l.id
            LIMIT p_limit
        ) AS f
        GROUP BY f.kind, f.tenant
    LOOP
        SELECT r.readied, r.least_rank INTO v_ready
        FROM carteiro.ready_lost(v_seat.lost, p_longest, p_now) AS r;
        v_count := v_count + v_ready.readied;
        v_tenants := v_tenants || v_seat.tenant;
        UPDATE carteiro.seats AS s
        SET n = s.n + 1,
            wake_at = CASE WHEN s.wake_at IS NOT NULL THEN least(s.wake_at, v_seat.alarm) END,
            lowest = least(s.lowest, v_ready.least_rank)
        WHERE s.ctid = (
            SELECT o.ctid FROM carteiro.seats AS o
            WHERE o.kind = v_seat.kind AND o.tenant = v_seat.tenant
            ORDER BY o.n DESC LIMIT 1
        );
    END LOOP;
    -- Other seats of these tenants may have waited for a slot.
    UPDATE carteiro.seats AS s
    SET n = s.n + 1,
        wake_at = least(s.wake_at, greatest(
            p_now, (SELECT c.seen_at - 1000 FROM carteiro.ring_clock AS c WHERE c.kind = s.kind ORDER BY c.n DESC LIMIT 1)
        ))
    FROM carteiro.tenants AS t
    WHERE s.tenant = ANY (v_tenants) AND s.wake_at IS NOT NULL AND t.id = s.tenant AND t.cap IS NOT NULL;
    RETURN v_count;
END
$$;

-- The seats as the next claim will find them, with the notes applied.
CREATE OR REPLACE VIEW carteiro.seats_and_notes AS
SELECT
    kind, tenant, sum(jobs)::bigint AS jobs, coalesce(min(lowest), 0) AS lowest, min(due_from) AS due_from
FROM (
    SELECT kind, tenant, jobs, lowest, due_from FROM carteiro.seats
    UNION ALL
    SELECT kind, tenant, jobs, rank, wake_at
    FROM carteiro.unseen_notes()
    WHERE kind <> ''
) AS told
GROUP BY kind, tenant;
