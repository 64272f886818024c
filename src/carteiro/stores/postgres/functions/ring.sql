-- Blocks claims until the transaction ends. Its number changes: a claim that has looked already must look again.
CREATE OR REPLACE FUNCTION carteiro.lock_ring() RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM 1 FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1 FOR UPDATE;
    UPDATE carteiro.ring AS r SET n = r.n + 1 WHERE r.ctid = (SELECT o.ctid FROM carteiro.ring AS o ORDER BY o.n DESC LIMIT 1);
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

-- Reads the notes into the ring. Only claim calls it, whose settings hold here. The caller holds the ring's lock. One
-- statement: notes are read and marked as read in the same snapshot. No alarm is set earlier than the next claim of its kind looks.
CREATE OR REPLACE FUNCTION carteiro.read_notes(p_jitter bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_ring record;
    v_kinds text[];      -- of the leases that were shortened
    v_lease_end bigint;
    v_tally bigint;
BEGIN
    SELECT r.ctid AS place, r.seen, r.folded, r.tallied INTO v_ring FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1;
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
    SELECT t.last_value INTO v_tally FROM carteiro.tallies_no_seq AS t; -- the table's newest rows may be dead
    IF v_tally > v_ring.tallied + 5000 THEN
        PERFORM carteiro.add_up(v_tally);
    END IF;
END
$$;

-- Adds the tallies to the seats. The caller holds the ring's lock.
CREATE OR REPLACE FUNCTION carteiro.add_up(p_tally bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    WITH read AS (DELETE FROM carteiro.tallies RETURNING kind, tenant, jobs)
    UPDATE carteiro.seats AS s SET n = s.n + 1, jobs = s.jobs + r.jobs
    FROM (SELECT kind, tenant, sum(jobs) AS jobs FROM read GROUP BY kind, tenant) AS r
    WHERE s.kind = r.kind AND s.tenant = r.tenant;
    UPDATE carteiro.ring SET tallied = p_tally;
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
    DELETE FROM carteiro.tallies;
    UPDATE carteiro.ring SET n = n + 1, seen = pg_current_snapshot(), folded = 0;
    UPDATE carteiro.ring_clock SET n = n + 1, least_vt = 0, lost_from = 0, seen_at = 0;
    UPDATE carteiro.seats SET n = n + 1, jobs = 0, wake_at = p_now, lowest = 0, due_from = 0;
    WITH jobs AS MATERIALIZED (
        SELECT j.kind, j.tenant, count(*) AS jobs
        FROM (
            SELECT kind, tenant FROM carteiro.ready
            UNION ALL SELECT kind, tenant FROM carteiro.delayed
            UNION ALL SELECT l.kind, l.tenant FROM carteiro.leased AS l, unnest(l.numbers)
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

-- Makes leased jobs ready whose lease has expired, or ends later than any can. Returns the number of jobs. The caller holds the
-- ring's lock.
CREATE OR REPLACE FUNCTION carteiro.ready_lost(
    p_no bigint[], p_claim text[], p_tenant text[], p_kind text[], p_longest bigint, p_now bigint
) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_no bigint[]; v_tenant text[]; v_kind text[]; v_claims integer[];
BEGIN
    SELECT array_agg(n), array_agg(t.o_tenant), array_agg(t.o_kind), array_agg(t.o_claims) INTO v_no, v_tenant, v_kind, v_claims
    FROM carteiro.take_leases(p_no, p_claim, p_tenant, p_kind, NULL, p_longest, p_now) AS t, unnest(t.o_numbers) AS n;
    PERFORM carteiro.end_claims(p_claim);
    WITH jobs AS MATERIALIZED (
        SELECT j.kind, j.tenant, carteiro.rank(m.priority, m.due_at) AS rank, m.id, j.no, j.claims
        FROM unnest(v_no, v_tenant, v_kind, v_claims) AS j (no, tenant, kind, claims)
        JOIN carteiro.ledger AS m ON m.no = j.no
    ),
    added AS (
        INSERT INTO carteiro.ready (kind, tenant, rank, id, message_no, claims) SELECT * FROM jobs ON CONFLICT DO NOTHING
    )
    UPDATE carteiro.seats AS s SET n = s.n + 1, lowest = j.rank
    FROM (SELECT kind, tenant, min(rank) AS rank FROM jobs GROUP BY kind, tenant) AS j
    WHERE s.kind = j.kind AND s.tenant = j.tenant AND s.lowest > j.rank;
    RETURN coalesce(cardinality(v_no), 0);
END
$$;

-- Makes the first due jobs of seats ready, p_limit of each: delayed ones, except those that another transaction is removing, and
-- leased ones whose worker was lost (p_lost_from NULL: those stay). Returns their number, with those that are held for
-- longer than they were leased. The caller holds the ring's lock.
CREATE OR REPLACE FUNCTION carteiro.ready_due(
    p_kinds text[], p_tenants text[], p_due_from bigint[], p_lost_from bigint[], p_longest bigint, p_now bigint, p_limit integer
) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_readied integer;
    v_no bigint[]; v_claim text[]; v_tenant text[]; v_kind text[];
BEGIN
    WITH taken AS (
        DELETE FROM carteiro.delayed AS d
        WHERE d.message_no = ANY (ARRAY(
            SELECT f.message_no
            FROM unnest(p_kinds, p_tenants, p_due_from) AS s (kind, tenant, due_from)
            CROSS JOIN LATERAL (
                SELECT o.message_no FROM carteiro.delayed AS o
                WHERE o.tenant = s.tenant AND o.kind = s.kind AND o.parked_until >= s.due_from AND o.parked_until <= p_now
                ORDER BY o.parked_until, o.id LIMIT p_limit
                FOR UPDATE SKIP LOCKED
            ) AS f
        ))
        RETURNING d.kind, d.tenant, d.rank, d.id, d.message_no, d.claims
    ),
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
    SELECT array_agg(n), array_agg(f.claim_id), array_agg(s.tenant), array_agg(s.kind) INTO v_no, v_claim, v_tenant, v_kind
    FROM unnest(p_kinds, p_tenants, p_lost_from) AS s (kind, tenant, lost_from)
    CROSS JOIN LATERAL (
        (
            SELECT l.claim_id, l.numbers FROM carteiro.leased AS l
            WHERE
                (l.tenant, l.kind, l.parked_until) >= (s.tenant, s.kind, s.lost_from)
                AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, p_now)
        )
        UNION ALL
        (
            SELECT l.claim_id, l.numbers FROM carteiro.leased AS l
            WHERE
                s.lost_from IS NOT NULL AND (l.tenant, l.kind, l.parked_until) > (s.tenant, s.kind, p_now + p_longest)
                AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, 4611686018427387904)
        )
    ) AS f
    CROSS JOIN LATERAL unnest(f.numbers) AS n;
    IF v_no IS NOT NULL THEN
        v_readied := v_readied + carteiro.keep_held(v_claim, p_longest, p_now)
            + carteiro.ready_lost(v_no, v_claim, v_tenant, v_kind, p_longest, p_now);
    END IF;
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
    v_no bigint[]; v_claim text[]; v_tenant text[]; v_kind text[];
    v_count integer;
    v_noted bigint;
BEGIN
    PERFORM carteiro.lock_ring();
    SELECT min(n.lease_end) INTO v_noted FROM carteiro.unseen_notes() AS n;
    DELETE FROM carteiro.claims AS c WHERE NOT EXISTS (SELECT FROM carteiro.leased AS l WHERE l.claim_id = c.id);
    SELECT array_agg(f.no), array_agg(f.claim_id), array_agg(f.tenant), array_agg(f.kind) INTO v_no, v_claim, v_tenant, v_kind
    FROM (
        SELECT n AS no, l.claim_id, l.tenant, l.kind
        FROM (SELECT DISTINCT ON (k.kind) k.kind, k.lost_from FROM carteiro.ring_clock AS k ORDER BY k.kind, k.n DESC) AS c
        CROSS JOIN LATERAL (
            (
                SELECT e.* FROM carteiro.leased AS e
                WHERE e.kind = c.kind AND e.parked_until >= least(c.lost_from, v_noted, p_now) AND e.parked_until <= p_now
                ORDER BY e.parked_until FETCH FIRST (p_limit) ROWS WITH TIES
            )
            UNION ALL
            (
                SELECT e.* FROM carteiro.leased AS e
                WHERE e.kind = c.kind AND e.parked_until > p_now + p_longest
                ORDER BY e.parked_until FETCH FIRST (p_limit) ROWS WITH TIES
            )
        ) AS l
        CROSS JOIN LATERAL unnest(l.numbers) AS n
        LEFT JOIN carteiro.messages AS m ON m.no = n
        ORDER BY l.parked_until, m.id
        LIMIT p_limit
    ) AS f;
    IF v_no IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM carteiro.keep_held(v_claim, p_longest, p_now);
    v_count := carteiro.ready_lost(v_no, v_claim, v_tenant, v_kind, p_longest, p_now);
    -- Also other seats of these tenants, which may have waited for a slot.
    UPDATE carteiro.seats AS s
    SET n = s.n + 1,
        wake_at = least(s.wake_at, greatest(
            p_now, (SELECT c.seen_at - 1000 FROM carteiro.ring_clock AS c WHERE c.kind = s.kind ORDER BY c.n DESC LIMIT 1)
        ))
    FROM carteiro.tenants AS t
    WHERE
        s.tenant = ANY (v_tenant) AND s.wake_at IS NOT NULL AND t.id = s.tenant
        AND (t.cap IS NOT NULL OR (s.kind, s.tenant) IN (
            SELECT j.kind, j.tenant FROM unnest(v_kind, v_tenant) AS j (kind, tenant)
        ));
    RETURN v_count;
END
$$;

-- The seats as the next claim will find them, with the notes and tallies applied.
CREATE OR REPLACE VIEW carteiro.seats_and_notes AS
SELECT
    kind, tenant, sum(jobs)::bigint AS jobs, coalesce(min(lowest), 0) AS lowest, min(due_from) AS due_from
FROM (
    SELECT kind, tenant, jobs, lowest, due_from FROM carteiro.seats
    UNION ALL
    SELECT kind, tenant, jobs, rank, wake_at
    FROM carteiro.unseen_notes()
    WHERE kind <> ''
    UNION ALL
    SELECT kind, tenant, jobs, NULL, NULL FROM carteiro.tallies
) AS told
GROUP BY kind, tenant;
