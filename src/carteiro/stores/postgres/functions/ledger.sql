-- Adds messages with their jobs. Returns the items (1, 2, …) that were not added, with the reason: 'known' (with the first
-- answer), 'unknown' or 'disabled' tenant. Also for callers inside a transaction of their own: nothing here writes the ring,
-- so an open transaction neither hides nor blocks a tenant.
CREATE OR REPLACE FUNCTION carteiro.accept(
    p_due_at bigint[], p_content text[],
    p_event_item integer[], p_event_type text[], p_event_metadata json[], p_event_at bigint[],
    p_tag_item integer[], p_tag text[], p_now bigint, {accepted_parameters}
) RETURNS TABLE (o_item integer, o_why text, o_created_at bigint, o_recipient_id text, o_request_id text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_open text[];    -- tenants that may send
    v_known text[];   -- tenants that there are
    v_no bigint[];
    v_new bigint[];
    v_all boolean;
    -- The caller's clock may be a little ahead: ready jobs are not delayed by that.
    v_here bigint := CASE WHEN p_now - carteiro.now_ms() BETWEEN 0 AND 1000 THEN carteiro.now_ms() ELSE p_now END;
BEGIN
    SELECT array_agg(t.id) FILTER (WHERE NOT t.disabled), array_agg(t.id) INTO v_open, v_known
    FROM (
        SELECT s.id, s.disabled FROM carteiro.tenants AS s
        WHERE s.id = ANY (ARRAY(SELECT DISTINCT unnest(p_tenant)))
        ORDER BY s.id
        FOR KEY SHARE -- it is not erased before this is committed
    ) AS t;
    v_no := ARRAY(SELECT nextval('carteiro.message_no') FROM generate_subscripts(p_id, 1));
    WITH added AS (
        INSERT INTO carteiro.messages (no, {accepted}, created_at)
        SELECT no, {accepted}, p_now
        FROM unnest(v_no, {accepted_arrays}) AS a (no, {accepted})
        WHERE a.tenant = ANY (v_open)
        ON CONFLICT (id) DO NOTHING
        RETURNING no
    )
    SELECT coalesce(array_agg(a.no), '{}') INTO v_new FROM added AS a;
    v_all := cardinality(v_new) = cardinality(v_no);

    INSERT INTO carteiro.entries (message_no, state, due_at, expires_at, tenant, is_email, created_at)
    SELECT a.no, 'ENQUEUED', a.due_at, a.due_at + a.ttl_ms, a.tenant, a.kind = 'email:send', p_now
    FROM unnest(v_no, p_due_at, p_ttl_ms, p_tenant, p_kind) AS a (no, due_at, ttl_ms, tenant, kind)
    WHERE v_all OR a.no = ANY (v_new);
    INSERT INTO carteiro.contents (message_no, content)
    SELECT a.no, a.content FROM unnest(v_no, p_content) AS a (no, content) WHERE v_all OR a.no = ANY (v_new);
    INSERT INTO carteiro.events (message_no, type, metadata, created_at)
    SELECT v_no[v.item], v.type, v.metadata, v.at
    FROM unnest(p_event_item, p_event_type, p_event_metadata, p_event_at) AS v (item, type, metadata, at)
    WHERE v_all OR v_no[v.item] = ANY (v_new);
    IF NOT EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = 'queue') THEN -- else a separate queue has the jobs
        INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
        SELECT a.tenant, a.kind, carteiro.rank(a.priority, a.due_at), a.id, a.no
        FROM unnest(v_no, p_id, p_tenant, p_kind, p_priority, p_due_at) AS a (no, id, tenant, kind, priority, due_at)
        WHERE a.due_at <= p_now AND (v_all OR a.no = ANY (v_new));
        IF p_now < ANY (p_due_at) THEN
            INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
            SELECT a.no, a.id, a.kind, a.tenant, carteiro.rank(a.priority, a.due_at), a.due_at
            FROM unnest(v_no, p_id, p_tenant, p_kind, p_priority, p_due_at) AS a (no, id, tenant, kind, priority, due_at)
            WHERE a.due_at > p_now AND (v_all OR a.no = ANY (v_new));
        END IF;
        INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
        SELECT a.kind, a.tenant, count(*), min(CASE WHEN a.due_at <= p_now THEN least(a.due_at, v_here) ELSE a.due_at END),
            min(CASE WHEN a.due_at <= p_now THEN carteiro.rank(a.priority, a.due_at) END)
        FROM unnest(v_no, p_tenant, p_kind, p_priority, p_due_at) AS a (no, tenant, kind, priority, due_at)
        WHERE v_all OR a.no = ANY (v_new)
        GROUP BY a.kind, a.tenant;
    END IF;
    IF cardinality(p_tag_item) > 0 THEN
        INSERT INTO carteiro.message_tags (tenant, tag, created_at, message_no)
        SELECT p_tenant[g.item], g.tag, p_now, v_no[g.item]
        FROM unnest(p_tag_item, p_tag) AS g (item, tag)
        WHERE v_all OR v_no[g.item] = ANY (v_new)
        ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(v_new) > 0 THEN
        PERFORM pg_notify(w.channel, '') FROM carteiro.wake_channel AS w;
    END IF;
    IF v_all THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT i,
        CASE
            WHEN m.no IS NOT NULL THEN 'known'
            WHEN p_tenant[i] = ANY (v_known) THEN 'disabled'
            ELSE 'unknown'
        END,
        m.created_at, m.recipient_id, m.request_id
    FROM generate_subscripts(p_id, 1) AS i LEFT JOIN carteiro.messages AS m ON m.id = p_id[i]
    WHERE NOT v_no[i] = ANY (v_new);
END
$$;

-- Stores judged entries, each only if it still has the version that was judged, and its job is still leased to the same
-- claim (NULL: to none). p_job 0 leaves the job, 1 drops it, 2 parks it until p_until without a claim. Events and dead
-- letters name their item (1, 2, …). With p_lock_ring waiting jobs may be removed, and no claim runs in between. Returns the
-- stored items; `has_work`: a job may be claimed sooner than before.
CREATE OR REPLACE FUNCTION carteiro.save(
    p_no bigint[], p_version integer[], p_claim text[], p_kind text[], p_tenant text[],
    p_state text[], p_due_at bigint[], p_expires_at bigint[], p_attempts integer[], p_charged integer[],
    p_in_doubt integer[], p_round integer[], p_revision integer[], p_holder text[], p_held_until bigint[],
    p_cancel_requested_at bigint[], p_evidence text[], p_provider text[], p_provider_id text[], p_failure json[],
    p_duration_ms bigint[], p_finished_at bigint[],
    p_job integer[], p_until bigint[],
    p_event_item integer[], p_event_type text[], p_event_metadata json[], p_event_at bigint[],
    p_buried_item integer[], p_reason text[], p_code text[], p_category text[], p_buried_failure json[],
    p_failed_attempts integer[],
    p_unburied_item integer[], p_lock_ring boolean, p_ttl_ms bigint, p_now bigint,
    OUT stored integer[], OUT has_work boolean
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    v_all boolean;
    v_moved bigint[];
    v_gone bigint[];
    v_waiting bigint[];
    v_ready tid[];
BEGIN
    has_work := false;
    IF p_lock_ring THEN
        PERFORM carteiro.lock_ring();
        v_ready := ARRAY( -- before their due times change: a ready job is found by its due time
            SELECT r.ctid
            FROM (
                SELECT m.tenant, m.kind, carteiro.rank(m.priority, e.due_at) AS rank, m.id
                FROM carteiro.messages AS m JOIN carteiro.entries AS e ON e.message_no = m.no
                WHERE m.no = ANY (p_no)
                OFFSET 0 -- known first: else all ready jobs of the tenant are scanned
            ) AS k
            JOIN carteiro.ready AS r
                ON r.tenant = k.tenant AND r.kind = k.kind AND r.rank = k.rank AND r.id = k.id
        );
    END IF;
    WITH changed AS (
        UPDATE carteiro.entries AS e
        SET version = e.version + 1, state = a.state, due_at = a.due_at, expires_at = a.expires_at,
            attempts = a.attempts, charged = a.charged, in_doubt = a.in_doubt, round = a.round,
            revision = a.revision, holder = a.holder, held_until = a.held_until,
            cancel_requested_at = a.cancel_requested_at, evidence = a.evidence, provider = a.provider,
            provider_message_id = a.provider_id, failure = a.failure, duration_ms = a.duration_ms,
            finished_at = a.finished_at
        FROM unnest(
            p_no, p_version, p_claim, p_state, p_due_at, p_expires_at, p_attempts, p_charged, p_in_doubt, p_round,
            p_revision, p_holder, p_held_until, p_cancel_requested_at, p_evidence, p_provider, p_provider_id, p_failure,
            p_duration_ms, p_finished_at
        ) WITH ORDINALITY AS a (
            no, version, claim, state, due_at, expires_at, attempts, charged, in_doubt, round, revision, holder,
            held_until, cancel_requested_at, evidence, provider, provider_id, failure, duration_ms, finished_at, item
        )
        WHERE
            e.message_no = a.no AND e.version = a.version
            AND a.claim IS NOT DISTINCT FROM (SELECT l.claim_id FROM carteiro.leased AS l WHERE l.message_no = a.no)
            AND NOT ( -- a requested change comes before the next attempt: see `begin_attempts`
                a.state = 'SENT_ATTEMPT' AND a.attempts > e.attempts
                AND EXISTS (SELECT FROM carteiro.queue_changes AS c WHERE c.message_no = a.no AND c.what <> 'limit')
            )
        RETURNING a.item
    )
    SELECT coalesce(array_agg(c.item::integer), '{}') INTO stored FROM changed AS c;
    v_all := cardinality(stored) = cardinality(p_no);
    IF cardinality(stored) = 0 THEN
        RETURN;
    END IF;

    IF cardinality(p_event_item) > 0 THEN
        INSERT INTO carteiro.events (message_no, type, metadata, created_at)
        SELECT p_no[v.item], v.type, v.metadata, v.at
        FROM unnest(p_event_item, p_event_type, p_event_metadata, p_event_at) AS v (item, type, metadata, at)
        WHERE v_all OR v.item = ANY (stored);
    END IF;

    -- Jobs that are finished, or wait again.
    v_moved := ARRAY(
        SELECT p_no[i] FROM generate_subscripts(p_no, 1) AS i
        WHERE p_job[i] IN (1, 2) AND (v_all OR i = ANY (stored))
    );
    IF cardinality(v_moved) > 0 THEN
        WITH gone AS (DELETE FROM carteiro.leased AS l WHERE l.message_no = ANY (v_moved) RETURNING l.message_no)
        SELECT coalesce(array_agg(g.message_no), '{}') INTO v_gone FROM gone AS g;
        IF p_lock_ring THEN
            WITH from_delayed AS (
                DELETE FROM carteiro.delayed AS d WHERE d.message_no = ANY (v_moved) RETURNING d.message_no
            ),
            from_ready AS (
                DELETE FROM carteiro.ready AS r
                WHERE r.ctid = ANY (v_ready) AND r.message_no = ANY (v_moved)
                RETURNING r.message_no
            )
            SELECT array_agg(g.message_no) INTO v_waiting
            FROM (SELECT message_no FROM from_delayed UNION ALL SELECT message_no FROM from_ready) AS g;
            v_gone := v_gone || v_waiting;
        END IF;
        -- The job of a lease that has just expired is ready again: it stays, and is found stale when it is claimed.
        v_all := v_all AND cardinality(v_gone) = cardinality(v_moved);
        IF 2 = ANY (p_job) THEN
            INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
            SELECT m.no, m.id, p_kind[i], p_tenant[i], carteiro.rank(m.priority, p_until[i]), p_until[i]
            FROM generate_subscripts(p_no, 1) AS i JOIN carteiro.messages AS m ON m.no = p_no[i]
            WHERE p_job[i] = 2 AND (v_all OR p_no[i] = ANY (v_gone))
            ON CONFLICT (message_no) DO UPDATE SET parked_until = excluded.parked_until, rank = excluded.rank, claims = 0;
        END IF;
        INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
        SELECT p_kind[i], p_tenant[i], -count(*) FILTER (WHERE p_job[i] = 1),
            min(CASE WHEN p_job[i] = 2 THEN p_until[i] ELSE c_far END)
        FROM generate_subscripts(p_no, 1) AS i
        WHERE p_job[i] IN (1, 2) AND (v_all OR p_no[i] = ANY (v_gone))
        GROUP BY p_kind[i], p_tenant[i];
        INSERT INTO carteiro.notes (kind, tenant, wake_at)
        SELECT '', t.id, p_now
        FROM carteiro.tenants AS t
        WHERE t.id = ANY (ARRAY(SELECT DISTINCT unnest(p_tenant))) AND t.cap IS NOT NULL;
        has_work := FOUND OR 2 = ANY (p_job);
        v_all := cardinality(stored) = cardinality(p_no);
    END IF;
    IF cardinality(p_buried_item) > 0 THEN
        INSERT INTO carteiro.dead_letters (
            message_id, message_no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at,
            enqueued_at, moved_at, ttl_ms
        )
        SELECT m.id, m.no, m.tenant, m.kind, b.reason, b.code, b.category, b.failure, b.failed, p_now, m.created_at,
            p_now, p_ttl_ms
        FROM unnest(p_buried_item, p_reason, p_code, p_category, p_buried_failure, p_failed_attempts)
            AS b (item, reason, code, category, failure, failed)
        JOIN carteiro.messages AS m ON m.no = p_no[b.item]
        WHERE v_all OR b.item = ANY (stored)
        ON CONFLICT (message_id) DO UPDATE
        SET reason = excluded.reason, code = excluded.code, category = excluded.category, failure = excluded.failure,
            failed_attempts = excluded.failed_attempts, failed_at = excluded.failed_at, moved_at = excluded.moved_at,
            ttl_ms = excluded.ttl_ms, redriven_at = NULL;
    END IF;
    IF cardinality(p_unburied_item) > 0 THEN
        DELETE FROM carteiro.dead_letters AS d
        USING carteiro.messages AS m
        WHERE
            m.no = ANY (ARRAY(SELECT p_no[i] FROM unnest(p_unburied_item) AS i WHERE v_all OR i = ANY (stored)))
            AND d.message_id = m.id;
    END IF;
END
$$;

-- As `save`, for the two changes that nearly every message has: fewer columns take less time. Each item is stored only
-- if it still has the judged version and its job the same claim; returns the stored items.
CREATE OR REPLACE FUNCTION carteiro.begin_attempts(
    p_no bigint[], p_version integer[], p_claim text[], p_attempts integer[], p_in_doubt integer[], p_until bigint[],
    p_provider text[], p_event_item integer[], p_event_type text[], p_event_metadata json[], p_event_at bigint[]
) RETURNS integer[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_stored integer[];
    v_all boolean;
BEGIN
    -- Before the leases are read: else a concurrent extension could be shortened unnoticed.
    PERFORM 1 FROM carteiro.entries AS e WHERE e.message_no = ANY (p_no) ORDER BY e.message_no FOR NO KEY UPDATE;
    WITH held AS (
        UPDATE carteiro.leased AS l SET parked_until = a.until
        FROM unnest(p_no, p_version, p_claim, p_until) WITH ORDINALITY AS a (no, version, claim, until, item),
            carteiro.entries AS e, carteiro.leased AS before
        WHERE
            l.message_no = a.no AND l.claim_id = a.claim AND e.message_no = a.no AND e.version = a.version
            AND before.message_no = a.no
            -- A change requested by SQL comes before the next attempt.
            AND NOT EXISTS (SELECT FROM carteiro.queue_changes AS c WHERE c.message_no = a.no AND c.what <> 'limit')
        RETURNING a.item, l.kind, l.tenant, l.parked_until, l.parked_until < before.parked_until AS is_sooner
    ),
    noted AS (
        INSERT INTO carteiro.notes (kind, tenant, wake_at, lease_end)
        SELECT h.kind, h.tenant, min(h.parked_until), min(h.parked_until)
        FROM held AS h
        WHERE h.is_sooner
        GROUP BY h.kind, h.tenant
    )
    SELECT coalesce(array_agg(h.item::integer), '{}') INTO v_stored FROM held AS h;
    v_all := cardinality(v_stored) = cardinality(p_no);
    WITH changed AS (
        UPDATE carteiro.entries AS e
        SET version = e.version + 1, state = 'SENT_ATTEMPT', attempts = a.attempts, in_doubt = a.in_doubt,
            holder = a.claim, held_until = a.until, provider = a.provider
        FROM unnest(p_no, p_version, p_claim, p_attempts, p_in_doubt, p_until, p_provider) WITH ORDINALITY
            AS a (no, version, claim, attempts, in_doubt, until, provider, item)
        WHERE e.message_no = a.no AND e.version = a.version AND (v_all OR a.item = ANY (v_stored))
        RETURNING a.item
    )
    SELECT coalesce(array_agg(c.item::integer), '{}') INTO v_stored FROM changed AS c;
    v_all := cardinality(v_stored) = cardinality(p_no);
    INSERT INTO carteiro.events (message_no, type, metadata, created_at)
    SELECT p_no[v.item], v.type, v.metadata, v.at
    FROM unnest(p_event_item, p_event_type, p_event_metadata, p_event_at) AS v (item, type, metadata, at)
    WHERE v_all OR v.item = ANY (v_stored);
    RETURN v_stored;
END
$$;

-- p_has_jobs: the jobs are here, and are deleted; else a separate queue has them.
CREATE OR REPLACE FUNCTION carteiro.settle_sent(
    p_no bigint[], p_version integer[], p_claim text[], p_attempts integer[], p_in_doubt integer[],
    p_duration_ms bigint[], p_provider text[], p_provider_id text[], p_event_item integer[], p_event_type text[],
    p_event_metadata json[], p_event_at bigint[], p_has_jobs boolean, p_now bigint,
    OUT stored integer[], OUT has_work boolean
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    v_all boolean;
    v_tenants text[];
BEGIN
    WITH changed AS (
        UPDATE carteiro.entries AS e
        SET version = e.version + 1, state = 'SENT', attempts = a.attempts, in_doubt = a.in_doubt, holder = a.claim,
            held_until = NULL, provider = a.provider, provider_message_id = a.provider_id, failure = NULL,
            duration_ms = a.duration_ms, finished_at = p_now
        FROM unnest(p_no, p_version, p_claim, p_attempts, p_in_doubt, p_duration_ms, p_provider, p_provider_id)
            WITH ORDINALITY AS a (no, version, claim, attempts, in_doubt, duration_ms, provider, provider_id, item)
        WHERE
            e.message_no = a.no AND e.version = a.version
            AND (
                NOT p_has_jobs OR a.claim = (SELECT l.claim_id FROM carteiro.leased AS l WHERE l.message_no = a.no)
            )
        RETURNING a.item
    )
    SELECT coalesce(array_agg(c.item::integer), '{}') INTO stored FROM changed AS c;
    v_all := cardinality(stored) = cardinality(p_no);
    INSERT INTO carteiro.events (message_no, type, metadata, created_at)
    SELECT p_no[v.item], v.type, v.metadata, v.at
    FROM unnest(p_event_item, p_event_type, p_event_metadata, p_event_at) AS v (item, type, metadata, at)
    WHERE v_all OR v.item = ANY (stored);
    has_work := false;
    IF NOT p_has_jobs THEN
        RETURN;
    END IF;
    -- The job of a lease that has just expired is ready again: it is found stale when it is claimed.
    WITH gone AS (
        DELETE FROM carteiro.leased AS l
        WHERE l.message_no = ANY (
            CASE WHEN v_all THEN p_no ELSE ARRAY(SELECT p_no[i] FROM unnest(stored) AS i) END
        )
        RETURNING l.kind, l.tenant
    ),
    noted AS (
        INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
        SELECT g.kind, g.tenant, -count(*), c_far FROM gone AS g GROUP BY g.kind, g.tenant
        RETURNING tenant
    )
    SELECT array_agg(DISTINCT n.tenant) INTO v_tenants FROM noted AS n;
    INSERT INTO carteiro.notes (kind, tenant, wake_at)
    SELECT '', t.id, p_now FROM carteiro.tenants AS t WHERE t.id = ANY (v_tenants) AND t.cap IS NOT NULL;
    has_work := FOUND;
END
$$;

-- True if a dead letter matches the filter; null matches all. The text is searched in code, reason and address, ignoring
-- the case of ASCII letters.
CREATE OR REPLACE FUNCTION carteiro.is_wanted(
    d carteiro.dead_letters, p_tenant text, p_kind text, p_reason text, p_code text, p_category text,
    p_is_redriven boolean, p_text text
) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT
        (p_tenant IS NULL OR d.tenant = p_tenant) AND (p_kind IS NULL OR d.kind = p_kind)
        AND (p_reason IS NULL OR d.reason = p_reason) AND (p_code IS NULL OR d.code = p_code)
        AND (p_category IS NULL OR d.category = p_category)
        AND (p_is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = p_is_redriven)
        AND (
            p_text IS NULL OR strpos(lower(d.code), p_text) > 0
            OR strpos(lower((carteiro.readable(d.failure::text) ->> 'reason') COLLATE "C"), p_text) > 0
            OR strpos(
                lower((SELECT m.to_address FROM carteiro.messages AS m WHERE m.no = d.message_no)), p_text
            ) > 0
        )
$$;
