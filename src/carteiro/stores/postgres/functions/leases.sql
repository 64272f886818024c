-- The leases of a claim are rows of numbers, one for each tenant, kind, end and number of claims: a claim of hundreds of jobs
-- writes a row per tenant, and a settle of many changes as few. A function that moves or drops leases locks their claims first, and
-- reads the rows by the next statement: so no row is missed that another transaction has just written.
-- The caller of a transaction that locks more takes the ring first, then entries, then claims.
--
-- A declared attempt is held for longer than its lease, as a rule. Its lease stays as it is: when it ends and the attempt is still
-- held, it gets the end of the hold (`keep_held`). Who reads the end of a lease reads the hold, too: `ends_of`.

-- Blocks changes of the leases of claims, and attempts, until the transaction ends. The settings of its callers hold here.
CREATE OR REPLACE FUNCTION carteiro.lock_claims(p_claims text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM 1 FROM carteiro.claims AS c WHERE c.id = ANY (p_claims) ORDER BY c.id FOR UPDATE;
END
$$;

-- When a job of a lease is free: at its end, or later if an attempt is held.
CREATE OR REPLACE FUNCTION carteiro.end_of(p_claim text, p_no bigint, p_until bigint) RETURNS TABLE (until bigint)
LANGUAGE sql STABLE
AS $$
    SELECT greatest(p_until, (
        SELECT e.held_until FROM carteiro.entries AS e
        WHERE e.message_no = p_no AND e.state = 'SENT_ATTEMPT' AND e.holder = p_claim
    ))
$$;

-- As `end_of`, of all jobs of a lease.
CREATE OR REPLACE FUNCTION carteiro.ends_of(p_claim text, p_numbers bigint[], p_until bigint) RETURNS TABLE (until bigint)
LANGUAGE sql STABLE
AS $$ SELECT e.until FROM unnest(p_numbers) AS n CROSS JOIN LATERAL carteiro.end_of(p_claim, n, p_until) AS e $$;

-- The lease of a message's job.
CREATE OR REPLACE FUNCTION carteiro.lease_of(p_no bigint, p_tenant text, p_kind text)
RETURNS TABLE (claim_id text, parked_until bigint, claims integer)
LANGUAGE sql STABLE
AS $$
    SELECT l.claim_id, e.until, l.claims
    FROM carteiro.leased AS l CROSS JOIN LATERAL carteiro.end_of(l.claim_id, p_no, l.parked_until) AS e
    WHERE l.tenant = p_tenant AND l.kind = p_kind AND p_no = ANY (l.numbers)
    LIMIT 1
$$;

-- As `lease_of`, if this claim has it.
CREATE OR REPLACE FUNCTION carteiro.lease_in(p_claim text, p_no bigint, p_tenant text, p_kind text)
RETURNS TABLE (parked_until bigint)
LANGUAGE sql STABLE
AS $$
    SELECT l.parked_until FROM carteiro.leased AS l
    WHERE
        (l.claim_id, l.tenant, l.kind) >= (p_claim, p_tenant, p_kind) -- as one, so that no other index fits
        AND (l.claim_id, l.tenant, l.kind) <= (p_claim, p_tenant, p_kind)
        AND p_no = ANY (l.numbers)
$$;

-- Takes jobs, or only some of them, out of the leases of their claims; returns those that were there. With p_now only out of
-- leases that have expired, or end later than any can: one may have been extended while we waited for the lock.
-- A claim without leases stays: see `end_claims`. p_has_lock: the caller has locked the claims.
CREATE OR REPLACE FUNCTION carteiro.take_leases(
    p_no bigint[], p_claim text[], p_tenant text[], p_kind text[], p_only bigint[] DEFAULT NULL,
    p_longest bigint DEFAULT NULL, p_now bigint DEFAULT NULL, p_has_lock boolean DEFAULT false
)
RETURNS TABLE (o_claim text, o_tenant text, o_kind text, o_claims integer, o_until bigint, o_numbers bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    IF NOT p_has_lock THEN
        PERFORM carteiro.lock_claims(p_claim);
    END IF;
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT l.*,
            ARRAY(SELECT n FROM unnest(l.numbers) AS n WHERE n = ANY (a.numbers)) AS taken,
            ARRAY(SELECT n FROM unnest(l.numbers) AS n WHERE n <> ALL (a.numbers)) AS kept
        FROM (
            SELECT i.claim, i.tenant, i.kind, array_agg(i.no) AS numbers
            FROM unnest(p_no, p_claim, p_tenant, p_kind) AS i (no, claim, tenant, kind)
            WHERE p_only IS NULL OR i.no = ANY (p_only)
            GROUP BY i.claim, i.tenant, i.kind
        ) AS a
        CROSS JOIN LATERAL (
            SELECT o.ctid AS place, o.claims, o.parked_until, o.numbers, o.claim_id, o.tenant, o.kind FROM carteiro.leased AS o
            WHERE
                (o.claim_id, o.tenant, o.kind) >= (a.claim, a.tenant, a.kind)
                AND (o.claim_id, o.tenant, o.kind) <= (a.claim, a.tenant, a.kind)
            OFFSET 0
        ) AS l
        WHERE l.numbers && a.numbers AND (p_now IS NULL OR l.parked_until <= p_now OR l.parked_until > p_now + p_longest)
    ),
    ended AS (
        DELETE FROM carteiro.leased AS l WHERE l.ctid = ANY (ARRAY(SELECT f.place FROM found AS f WHERE f.kept = '{}'))
    ),
    cut AS (
        UPDATE carteiro.leased AS l SET numbers = f.kept FROM found AS f WHERE l.ctid = f.place AND f.kept <> '{}'
    )
    SELECT f.claim_id, f.tenant, f.kind, f.claims, f.parked_until, f.taken FROM found AS f;
END
$$;

-- Forgets claims that have no leases. The settings of its callers hold here.
CREATE OR REPLACE FUNCTION carteiro.end_claims(p_claims text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM carteiro.claims AS c
    WHERE c.id = ANY (p_claims) AND NOT EXISTS (SELECT FROM carteiro.leased AS l WHERE l.claim_id = c.id);
END
$$;

-- Moves the ends of leases; p_is_longer: never to an earlier time. Returns the jobs that their claims have. A note names
-- earlier ends.
CREATE OR REPLACE FUNCTION carteiro.move_leases(
    p_no bigint[], p_claim text[], p_tenant text[], p_kind text[], p_until bigint, p_is_longer boolean
) RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_row record;
    v_until bigint;
    v_no bigint[] := '{}';
BEGIN
    FOR v_row IN SELECT * FROM carteiro.take_leases(p_no, p_claim, p_tenant, p_kind) LOOP
        v_until := CASE WHEN p_is_longer THEN greatest(v_row.o_until, p_until) ELSE p_until END;
        INSERT INTO carteiro.leased AS l (claim_id, tenant, kind, claims, parked_until, numbers)
        VALUES (v_row.o_claim, v_row.o_tenant, v_row.o_kind, v_row.o_claims, v_until, v_row.o_numbers)
        ON CONFLICT (claim_id, tenant, kind, parked_until, claims) DO UPDATE SET numbers = l.numbers || excluded.numbers;
        IF v_until < v_row.o_until THEN
            INSERT INTO carteiro.notes (kind, tenant, wake_at, lease_end) VALUES (v_row.o_kind, v_row.o_tenant, v_until, v_until);
        END IF;
        v_no := v_no || v_row.o_numbers;
    END LOOP;
    RETURN v_no;
END
$$;

-- Expired leases of attempts that are held get the end of the hold. Returns the number of jobs.
CREATE OR REPLACE FUNCTION carteiro.keep_held(p_claims text[], p_longest bigint, p_now bigint) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_hold record;
    v_kept bigint := 0;
BEGIN
    PERFORM carteiro.lock_claims(p_claims);
    FOR v_hold IN
        SELECT e.held_until, array_agg(n) AS no, array_agg(l.claim_id) AS claim, array_agg(l.tenant) AS tenant, array_agg(l.kind) AS kind
        FROM carteiro.leased AS l CROSS JOIN LATERAL unnest(l.numbers) AS n JOIN carteiro.entries AS e ON e.message_no = n
        WHERE
            l.claim_id = ANY (p_claims) AND l.parked_until <= p_now AND e.state = 'SENT_ATTEMPT' AND e.holder = l.claim_id
            AND e.held_until > p_now AND e.held_until <= p_now + p_longest
        GROUP BY e.held_until
    LOOP
        v_kept := v_kept + cardinality(
            carteiro.move_leases(v_hold.no, v_hold.claim, v_hold.tenant, v_hold.kind, v_hold.held_until, true)
        );
    END LOOP;
    RETURN v_kept;
END
$$;

-- Drops jobs for good, and tallies them. Returns the tenants and how many jobs were there. Other attempts of their claims may be
-- declared meanwhile.
CREATE OR REPLACE FUNCTION carteiro.drop_leases(
    p_no bigint[], p_claim text[], p_tenant text[], p_kind text[], OUT o_tenants text[], OUT o_jobs bigint
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    PERFORM 1 FROM carteiro.claims AS c WHERE c.id = ANY (p_claim) ORDER BY c.id FOR NO KEY UPDATE;
    WITH noted AS (
        INSERT INTO carteiro.tallies AS y (kind, tenant, jobs)
        SELECT t.o_kind, t.o_tenant, -sum(cardinality(t.o_numbers))
        FROM carteiro.take_leases(p_no, p_claim, p_tenant, p_kind, p_has_lock => true) AS t
        GROUP BY t.o_kind, t.o_tenant
        RETURNING y.tenant, y.jobs
    )
    SELECT array_agg(n.tenant), coalesce(-sum(n.jobs), 0) INTO o_tenants, o_jobs FROM noted AS n;
    PERFORM carteiro.end_claims(p_claim);
END
$$;
