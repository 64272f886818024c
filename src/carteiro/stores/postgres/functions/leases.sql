-- The leases of a claim are rows of numbers, one for each tenant, kind, end and number of claims: a claim of hundreds of jobs
-- writes a row per tenant, and a settle of many changes as few. A function that moves or drops leases locks their claims first, and
-- reads the rows by the next statement: so no row is missed that another transaction has just written.
-- The caller of a transaction that locks more takes the ring first, then entries, then claims.

-- Blocks changes of the leases of claims until the transaction ends.
CREATE OR REPLACE FUNCTION carteiro.lock_claims(p_claims text[]) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    PERFORM 1 FROM carteiro.claims AS c WHERE c.id = ANY (p_claims) ORDER BY c.id FOR UPDATE;
END
$$;

-- The lease of a message's job.
CREATE OR REPLACE FUNCTION carteiro.lease_of(p_no bigint, p_tenant text, p_kind text)
RETURNS TABLE (claim_id text, parked_until bigint, claims integer)
LANGUAGE sql STABLE
AS $$
    SELECT l.claim_id, l.parked_until, l.claims FROM carteiro.leased AS l
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
-- A claim without leases stays: see `end_claims`.
CREATE OR REPLACE FUNCTION carteiro.take_leases(
    p_no bigint[], p_claim text[], p_tenant text[], p_kind text[], p_only bigint[] DEFAULT NULL,
    p_longest bigint DEFAULT NULL, p_now bigint DEFAULT NULL
)
RETURNS TABLE (o_claim text, o_tenant text, o_kind text, o_claims integer, o_until bigint, o_numbers bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    PERFORM carteiro.lock_claims(p_claim);
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

-- Forgets claims that have no leases.
CREATE OR REPLACE FUNCTION carteiro.end_claims(p_claims text[]) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
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

-- Drops jobs for good, and tallies them. Returns the tenants and how many jobs were there.
CREATE OR REPLACE FUNCTION carteiro.drop_leases(
    p_no bigint[], p_claim text[], p_tenant text[], p_kind text[], OUT o_tenants text[], OUT o_jobs bigint
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    WITH noted AS (
        INSERT INTO carteiro.tallies AS y (kind, tenant, jobs)
        SELECT t.o_kind, t.o_tenant, -sum(cardinality(t.o_numbers))
        FROM carteiro.take_leases(p_no, p_claim, p_tenant, p_kind) AS t
        GROUP BY t.o_kind, t.o_tenant
        RETURNING y.tenant, y.jobs
    )
    SELECT array_agg(n.tenant), coalesce(-sum(n.jobs), 0) INTO o_tenants, o_jobs FROM noted AS n;
    PERFORM carteiro.end_claims(p_claim);
END
$$;
