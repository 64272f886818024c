-- A list whose items are all the same is sent as one item.
CREATE OR REPLACE FUNCTION carteiro.spread(items anyarray, count integer) RETURNS anyarray
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE WHEN cardinality(items) = 1 AND count > 1 THEN array_fill(items[1], ARRAY[count]) ELSE items END $$;

-- Adds messages with their jobs. Returns the items (1, 2, …) that were not added, with the reason: 'known' (with the first
-- answer), 'unknown' or 'disabled' tenant. Also for callers inside a transaction of their own: nothing here writes the ring,
-- so an open transaction neither hides nor blocks a tenant.
--
-- Items are read as p_id[i]: the language keeps its arrays taken apart, and `unnest` of many arrays costs three times as much.
CREATE OR REPLACE FUNCTION carteiro.accept(
    p_due_at bigint[], p_content text[],
    p_tag_item integer[], p_tag text[], p_now bigint, {accepted_parameters}
) RETURNS TABLE (o_item integer, o_why text, o_created_at bigint, o_recipient_id text, o_request_id text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c_few CONSTANT integer := 32;
    c_count CONSTANT integer := cardinality(p_id);
    v_asked text[] := ARRAY(SELECT DISTINCT unnest(p_tenant));
    v_open text[];    -- tenants that may send
    v_known text[];   -- tenants that there are
    v_no bigint[];
    v_new bigint[];   -- those that were added, unless all were
    v_all boolean;
    -- The caller's clock may be a little ahead: ready jobs are not delayed by that.
    v_here bigint := CASE WHEN p_now - carteiro.now_ms() BETWEEN 0 AND 1000 THEN carteiro.now_ms() ELSE p_now END;
BEGIN
    p_due_at := carteiro.spread(p_due_at, c_count);
    p_kind := carteiro.spread(p_kind, c_count);
    p_declares := carteiro.spread(p_declares, c_count);
    p_delivery := carteiro.spread(p_delivery, c_count);
    p_priority := carteiro.spread(p_priority, c_count);
    p_ttl_ms := carteiro.spread(p_ttl_ms, c_count);
    p_request_id := carteiro.spread(p_request_id, c_count);
    SELECT coalesce(array_agg(t.id) FILTER (WHERE NOT t.disabled), '{}'), array_agg(t.id) INTO v_open, v_known
    FROM (
        SELECT s.id, s.disabled FROM carteiro.tenants AS s
        WHERE s.id = ANY (v_asked)
        ORDER BY s.id
        FOR KEY SHARE -- it is not erased before this is committed
    ) AS t;
    v_no := ARRAY(SELECT nextval('carteiro.message_no') FROM generate_series(1, c_count));
    v_all := cardinality(v_open) = cardinality(v_asked);
    IF v_all AND c_count > c_few THEN
        BEGIN -- usually none is known, and ON CONFLICT looks each up before it adds it
            INSERT INTO carteiro.messages (no, due_at, {accepted}, created_at, content)
            SELECT v_no[i], p_due_at[i], {accepted_items}, p_now, p_content[i] FROM generate_series(1, c_count) AS i;
        EXCEPTION WHEN unique_violation THEN
            v_all := false;
        END;
    END IF;
    IF NOT v_all OR c_count <= c_few THEN
        WITH added AS (
            INSERT INTO carteiro.messages (no, due_at, {accepted}, created_at, content)
            SELECT v_no[i], p_due_at[i], {accepted_items}, p_now, p_content[i]
            FROM generate_series(1, c_count) AS i
            WHERE p_tenant[i] = ANY (v_open)
            ON CONFLICT (id) DO NOTHING
            RETURNING no
        )
        SELECT coalesce(array_agg(a.no), '{}') INTO v_new FROM added AS a;
        v_all := cardinality(v_new) = c_count;
    END IF;

    INSERT INTO carteiro.unfinished (expires_at, message_no)
    SELECT p_due_at[i] + p_ttl_ms[i], v_no[i]
    FROM generate_series(1, c_count) AS i
    WHERE v_all OR v_no[i] = ANY (v_new);
    IF NOT EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = 'queue') THEN -- else a separate queue has the jobs
        INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
        SELECT p_tenant[i], p_kind[i], carteiro.rank(p_priority[i], p_due_at[i]), p_id[i], v_no[i]
        FROM generate_series(1, c_count) AS i
        WHERE p_due_at[i] <= p_now AND (v_all OR v_no[i] = ANY (v_new));
        IF p_now < ANY (p_due_at) THEN
            INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
            SELECT v_no[i], p_id[i], p_kind[i], p_tenant[i], carteiro.rank(p_priority[i], p_due_at[i]), p_due_at[i]
            FROM generate_series(1, c_count) AS i
            WHERE p_due_at[i] > p_now AND (v_all OR v_no[i] = ANY (v_new));
        END IF;
        INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
        SELECT a.kind, a.tenant, count(*), min(CASE WHEN a.due_at <= p_now THEN least(a.due_at, v_here) ELSE a.due_at END),
            min(CASE WHEN a.due_at <= p_now THEN carteiro.rank(a.priority, a.due_at) END)
        FROM (
            SELECT p_kind[i] AS kind, p_tenant[i] AS tenant, p_priority[i] AS priority, p_due_at[i] AS due_at
            FROM generate_series(1, c_count) AS i
            WHERE v_all OR v_no[i] = ANY (v_new)
        ) AS a
        GROUP BY a.kind, a.tenant;
    END IF;
    INSERT INTO carteiro.rollup_notes (what, at, figures)
    SELECT 'accepted', p_now, json_agg(json_build_array(a.tenant, a.template_type, a.count))
    FROM (
        SELECT p_tenant[i] AS tenant, p_template_type[i] AS template_type, count(*)
        FROM generate_series(1, c_count) AS i
        WHERE v_all OR v_no[i] = ANY (v_new)
        GROUP BY 1, 2
    ) AS a
    HAVING count(*) > 0;
    IF cardinality(p_tag_item) > 0 THEN
        INSERT INTO carteiro.message_tags (tenant, tag, created_at, message_no)
        SELECT p_tenant[g.item], g.tag, p_now, v_no[g.item]
        FROM unnest(p_tag_item, p_tag) AS g (item, tag)
        WHERE v_all OR v_no[g.item] = ANY (v_new)
        ON CONFLICT DO NOTHING;
    END IF;
    IF (CASE WHEN v_all THEN c_count ELSE cardinality(v_new) END) > 0 THEN
        PERFORM pg_notify(
            w.channel, CASE WHEN p_kind[1] = ALL (p_kind) AND length(p_kind[1]) < 1000 THEN 'kind ' || p_kind[1] ELSE '' END
        ) FROM carteiro.wake_channel AS w;
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
    FROM generate_series(1, c_count) AS i LEFT JOIN carteiro.messages AS m ON m.id = p_id[i]
    WHERE NOT v_no[i] = ANY (v_new);
END
$$;

-- The ids of recipients: of a known one of the tenant, by external id, else by document (one that has no other external
-- id), which is updated; else of a new one. One after the other: each sees those before it. The caller holds their locks.
CREATE OR REPLACE FUNCTION carteiro.meet(
    p_id text[], p_tenant text[], p_email text[], p_external_id text[], p_cpf_cnpj_hash text[], p_razao_social text[],
    p_nome text[], p_now bigint
) RETURNS text[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_known text;
BEGIN
    FOR i IN 1..cardinality(p_id) LOOP
        v_known := (
            SELECT r.id FROM carteiro.recipient_records AS r
            WHERE r.tenant = p_tenant[i] AND r.external_id = p_external_id[i] AND r.deleted_at IS NULL
        );
        IF v_known IS NULL AND p_cpf_cnpj_hash[i] IS NOT NULL THEN
            v_known := (
                SELECT r.id FROM carteiro.recipient_records AS r
                WHERE
                    r.tenant = p_tenant[i] AND r.cpf_cnpj_hash = p_cpf_cnpj_hash[i] AND r.deleted_at IS NULL
                    AND (p_external_id[i] IS NULL OR r.external_id IS NULL)
                ORDER BY r.id
                LIMIT 1
            );
        END IF;
        IF v_known IS NULL THEN
            INSERT INTO carteiro.recipient_records (
                id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at
            )
            VALUES (
                p_id[i], p_tenant[i], p_email[i], p_external_id[i], p_cpf_cnpj_hash[i], p_razao_social[i], p_nome[i], p_now
            );
        ELSE
            UPDATE carteiro.recipient_records AS r
            SET email = p_email[i], external_id = coalesce(p_external_id[i], r.external_id),
                cpf_cnpj_hash = coalesce(p_cpf_cnpj_hash[i], r.cpf_cnpj_hash),
                razao_social = coalesce(p_razao_social[i], r.razao_social), nome = coalesce(p_nome[i], r.nome)
            WHERE r.id = v_known;
            p_id[i] := v_known;
        END IF;
    END LOOP;
    RETURN p_id;
END
$$;

-- Messages as a worker must know them, of tenants that are looked up once each: p_places has the number (1, 2, …) of each. A
-- function, since the server makes a new plan for each list of a statement: that takes longer than to read one message.
CREATE OR REPLACE FUNCTION carteiro.opened(p_ids text[], p_places integer[], p_tenants text[])
RETURNS TABLE (
    id text, tenant text, state text, held_until bigint, due_at bigint, expires_at bigint, attempts integer, charged integer,
    in_doubt integer, revision integer, is_cancelled boolean, provider text, request_id text, delivery text,
    recipient_id text, preset text, content text, has_suppressed boolean
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_presets text[];
    v_suppressed boolean[];
BEGIN
    SELECT
        array_agg((SELECT t.retry_preset FROM carteiro.tenants AS t WHERE t.id = g.id) ORDER BY g.place),
        array_agg((
            SELECT true FROM carteiro.suppressions AS s WHERE s.tenant = g.id
            ORDER BY s.tenant, s.key, s.reason LIMIT 1 -- so that no table is scanned for tenants that have none
        ) IS NOT NULL ORDER BY g.place)
    INTO v_presets, v_suppressed
    FROM unnest(p_tenants) WITH ORDINALITY AS g (id, place);
    RETURN QUERY
    SELECT
        m.id, m.tenant, m.state, m.held_until, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt, m.revision,
        m.cancel_requested_at IS NOT NULL, m.provider, m.request_id, m.delivery, m.recipient_id,
        coalesce(
            CASE WHEN m.template_type IS NOT NULL THEN (
                SELECT CASE WHEN t.deleted_at IS NULL THEN t.retry_preset END FROM carteiro.templates AS t
                WHERE t.tenant = m.tenant AND t.type = m.template_type
                ORDER BY t.version DESC LIMIT 1
            ) END,
            v_presets[i.place]
        ),
        m.content, v_suppressed[i.place]
    FROM unnest(p_ids, p_places) AS i (id, place)
    CROSS JOIN LATERAL (SELECT * FROM carteiro.ledger AS n WHERE n.id = i.id OFFSET 0) AS m;
END
$$;

-- Stores judged entries, each only if it still has the version that was judged (0: none), and its job is still leased to
-- the same claim (NULL: to none). p_was is the expiry under which it is unfinished so far. p_job 0 leaves the job, 1 drops it,
-- 2 parks it until p_until without a claim, 3 holds it for its claim until then. Events that a timeline has no room for, and
-- dead letters, name their item (1, 2, …). With p_lock_ring waiting jobs may be removed, and no claim runs in between.
-- Returns the stored items; `has_work`: a job may be claimed sooner than before.
CREATE OR REPLACE FUNCTION carteiro.save(
    p_no bigint[], p_version integer[], p_claim text[], p_kind text[], p_tenant text[], p_was bigint[],
    p_state text[], p_due_at bigint[], p_expires_at bigint[], p_attempts integer[], p_charged integer[],
    p_in_doubt integer[], p_round integer[], p_revision integer[], p_holder text[], p_held_until bigint[],
    p_cancel_requested_at bigint[], p_evidence text[], p_provider text[], p_provider_id text[], p_failure json[],
    p_duration_ms bigint[], p_finished_at bigint[], p_retry_of text[], p_timeline text[],
    p_job integer[], p_until bigint[],
    p_event_item integer[], p_event_position integer[], p_event_type text[], p_event_metadata json[],
    p_event_at bigint[],
    p_buried_item integer[], p_reason text[], p_code text[], p_category text[], p_buried_failure json[],
    p_failed_attempts integer[], p_group text[], p_waits_for text[],
    p_unburied_item integer[], p_figures json[], p_lock_ring boolean, p_ttl_ms bigint, p_now bigint,
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
                SELECT m.tenant, m.kind, carteiro.rank(m.priority, m.due_at) AS rank, m.id
                FROM carteiro.ledger AS m
                WHERE m.no = ANY (p_no)
                OFFSET 0 -- known first: else all ready jobs of the tenant are scanned
            ) AS k
            JOIN carteiro.ready AS r
                ON r.tenant = k.tenant AND r.kind = k.kind AND r.rank = k.rank AND r.id = k.id
        );
    END IF;
    IF NOT 0 = ALL (p_job) THEN
        -- Before the leases are read: else an extension could be shortened unnoticed, or the job of a lease that expires now
        -- stay behind, ready, although its message has ended or must wait.
        PERFORM 1 FROM carteiro.entries AS e WHERE e.message_no = ANY (p_no) ORDER BY e.message_no FOR NO KEY UPDATE;
        PERFORM carteiro.lock_claims(p_claim);
    END IF;
    WITH asked AS MATERIALIZED (
        SELECT a.*
        FROM unnest(
            p_no, p_tenant, p_kind, p_version, p_claim, p_state, p_due_at, p_expires_at, p_attempts, p_charged, p_in_doubt, p_round,
            p_revision, p_holder, p_held_until, p_cancel_requested_at, p_evidence, p_provider, p_provider_id, p_failure,
            p_duration_ms, p_finished_at, p_retry_of, p_timeline
        ) WITH ORDINALITY AS a (
            no, tenant, kind, version, claim, state, due_at, expires_at, attempts, charged, in_doubt, round, revision, holder,
            held_until, cancel_requested_at, evidence, provider, provider_id, failure, duration_ms, finished_at,
            retry_of, timeline, item
        )
        WHERE
            CASE
                WHEN a.claim IS NULL THEN NOT EXISTS (SELECT FROM carteiro.lease_of(a.no, a.tenant, a.kind))
                ELSE EXISTS (SELECT FROM carteiro.lease_in(a.claim, a.no, a.tenant, a.kind))
            END
            AND NOT ( -- a requested change comes before the next attempt
                a.state = 'SENT_ATTEMPT'
                AND a.attempts > coalesce((SELECT e.attempts FROM carteiro.entries AS e WHERE e.message_no = a.no), 0)
                AND EXISTS (SELECT FROM carteiro.queue_changes AS c WHERE c.message_no = a.no AND c.what <> 'limit')
            )
    ),
    changed AS (
        UPDATE carteiro.entries AS e
        SET version = e.version + 1, state = a.state, due_at = a.due_at, expires_at = a.expires_at,
            attempts = a.attempts, charged = a.charged, in_doubt = a.in_doubt, round = a.round,
            revision = a.revision, holder = a.holder, held_until = a.held_until,
            cancel_requested_at = a.cancel_requested_at, evidence = a.evidence, provider = a.provider,
            provider_message_id = a.provider_id, failure = a.failure, duration_ms = a.duration_ms,
            finished_at = a.finished_at, retry_of = a.retry_of, timeline = e.timeline || a.timeline
        FROM asked AS a
        WHERE a.version > 0 AND e.message_no = a.no AND e.version = a.version
        RETURNING a.item
    ),
    added AS (
        INSERT INTO carteiro.entries (
            message_no, version, state, due_at, expires_at, attempts, charged, in_doubt, round, revision, holder,
            held_until, cancel_requested_at, evidence, provider, provider_message_id, failure, duration_ms,
            finished_at, retry_of, tenant, is_email, created_at, timeline
        )
        SELECT
            a.no, 2, a.state, a.due_at, a.expires_at, a.attempts, a.charged, a.in_doubt, a.round, a.revision, a.holder,
            a.held_until, a.cancel_requested_at, a.evidence, a.provider, a.provider_id, a.failure, a.duration_ms,
            a.finished_at, a.retry_of, m.tenant, m.kind = 'email:send', m.created_at, a.timeline
        FROM asked AS a JOIN carteiro.messages AS m ON m.no = a.no
        WHERE a.version = 0
        ON CONFLICT (message_no) DO NOTHING
        RETURNING message_no
    )
    SELECT coalesce(array_agg(c.item::integer), '{}') INTO stored
    FROM (
        SELECT d.item FROM changed AS d
        UNION ALL
        SELECT a.item FROM added AS d JOIN asked AS a ON a.no = d.message_no
    ) AS c;
    v_all := cardinality(stored) = cardinality(p_no);
    IF cardinality(stored) = 0 THEN
        RETURN;
    END IF;

    IF cardinality(p_event_item) > 0 THEN
        INSERT INTO carteiro.events (message_no, position, type, metadata, created_at)
        SELECT p_no[v.item], v.position, v.type, v.metadata, v.at
        FROM unnest(p_event_item, p_event_position, p_event_type, p_event_metadata, p_event_at)
            AS v (item, position, type, metadata, at)
        WHERE v_all OR v.item = ANY (stored);
    END IF;
    DELETE FROM carteiro.unfinished AS u
    USING unnest(stored) AS i
    WHERE
        u.expires_at = p_was[i] AND u.message_no = p_no[i]
        AND (p_finished_at[i] IS NOT NULL OR p_expires_at[i] <> p_was[i]);
    INSERT INTO carteiro.unfinished (expires_at, message_no)
    SELECT p_expires_at[i], p_no[i] FROM unnest(stored) AS i
    WHERE p_finished_at[i] IS NULL AND p_expires_at[i] IS DISTINCT FROM p_was[i];
    IF 3 = ANY (p_job) THEN
        PERFORM carteiro.move_leases(
            array_agg(p_no[i]), array_agg(p_claim[i]), array_agg(p_tenant[i]), array_agg(p_kind[i]), p_until[i], false
        )
        FROM unnest(stored) AS i
        WHERE p_job[i] = 3
        GROUP BY p_until[i];
    END IF;

    -- Jobs that are finished, or wait again.
    v_moved := ARRAY(
        SELECT p_no[i] FROM generate_subscripts(p_no, 1) AS i
        WHERE p_job[i] IN (1, 2) AND (v_all OR i = ANY (stored))
    );
    IF cardinality(v_moved) > 0 THEN
        SELECT coalesce(array_agg(n), '{}') INTO v_gone
        FROM carteiro.take_leases(p_no, p_claim, p_tenant, p_kind, v_moved) AS t, unnest(t.o_numbers) AS n;
        PERFORM carteiro.end_claims(p_claim);
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
        v_all := v_all AND cardinality(v_gone) = cardinality(v_moved);
        IF 2 = ANY (p_job) THEN
            INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
            SELECT m.no, m.id, p_kind[i], p_tenant[i], carteiro.rank(m.priority, p_until[i]), p_until[i]
            FROM generate_subscripts(p_no, 1) AS i JOIN carteiro.messages AS m ON m.no = p_no[i]
            WHERE p_job[i] = 2 AND p_until[i] > p_now AND (v_all OR p_no[i] = ANY (v_gone))
            ON CONFLICT (message_no) DO UPDATE SET parked_until = excluded.parked_until, rank = excluded.rank, claims = 0;
            -- Those that are due are ready at once: a clock that is set back does not delay them.
            INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
            SELECT p_tenant[i], p_kind[i], carteiro.rank(m.priority, p_until[i]), m.id, m.no
            FROM generate_subscripts(p_no, 1) AS i JOIN carteiro.messages AS m ON m.no = p_no[i]
            WHERE p_job[i] = 2 AND p_until[i] <= p_now AND (v_all OR p_no[i] = ANY (v_gone))
            ON CONFLICT DO NOTHING;
        END IF;
        INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
        SELECT p_kind[i], p_tenant[i], -count(*) FILTER (WHERE p_job[i] = 1),
            min(CASE WHEN p_job[i] = 2 THEN p_until[i] ELSE c_far END),
            min(CASE WHEN p_job[i] = 2 AND p_until[i] <= p_now THEN carteiro.rank(m.priority, p_until[i]) END)
        FROM generate_subscripts(p_no, 1) AS i JOIN carteiro.messages AS m ON m.no = p_no[i]
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
            enqueued_at, moved_at, ttl_ms, failure_group, said, waits_for, waits_since
        )
        SELECT m.id, m.no, m.tenant, m.kind, b.reason, b.code, b.category, b.failure, b.failed, p_now, m.created_at,
            p_now, p_ttl_ms, b.failure_group, carteiro.said(b.code, b.failure, m.to_address), b.waits_for,
            CASE WHEN b.waits_for IS NOT NULL THEN p_now END
        FROM unnest(
            p_buried_item, p_reason, p_code, p_category, p_buried_failure, p_failed_attempts, p_group, p_waits_for
        ) AS b (item, reason, code, category, failure, failed, failure_group, waits_for)
        JOIN carteiro.messages AS m ON m.no = p_no[b.item]
        WHERE v_all OR b.item = ANY (stored)
        ON CONFLICT (message_id) DO UPDATE
        SET reason = excluded.reason, code = excluded.code, category = excluded.category, failure = excluded.failure,
            failed_attempts = excluded.failed_attempts, failed_at = excluded.failed_at, moved_at = excluded.moved_at,
            ttl_ms = excluded.ttl_ms, redriven_at = NULL, failure_group = excluded.failure_group, said = excluded.said,
            waits_for = excluded.waits_for, waits_since = excluded.waits_since;
    END IF;
    IF cardinality(p_unburied_item) > 0 THEN
        DELETE FROM carteiro.dead_letters AS d
        USING carteiro.messages AS m
        WHERE
            m.no = ANY (ARRAY(SELECT p_no[i] FROM unnest(p_unburied_item) AS i WHERE v_all OR i = ANY (stored)))
            AND d.message_id = m.id;
    END IF;
    INSERT INTO carteiro.rollup_notes (what, at, figures)
    SELECT 'changed', p_now, json_agg(json_build_array(m.tenant, m.template_type, m.due_at, p_figures[i]))
    FROM unnest(stored) AS i JOIN carteiro.messages AS m ON m.no = p_no[i]
    WHERE p_figures[i] IS NOT NULL
    HAVING count(*) > 0;
END
$$;

-- The items (1, 2, …) whose messages are not among the stored ones. The settings of its callers hold here.
CREATE OR REPLACE FUNCTION carteiro.left_out(p_id text[], p_stored bigint[]) RETURNS integer[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF cardinality(p_stored) = cardinality(p_id) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(
        SELECT i
        FROM generate_subscripts(p_id, 1) AS i
        WHERE NOT coalesce((SELECT m.no FROM carteiro.messages AS m WHERE m.id = p_id[i]) = ANY (p_stored), false)
    );
END
$$;

-- Raises an error unless the next statement sees what others have committed: else a repeated one would fail for ever.
CREATE OR REPLACE FUNCTION carteiro.sees_others() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE serialization_failure USING MESSAGE = 'could not serialize access: another transaction added an entry';
    END IF;
END
$$;

-- Stores the first attempts of messages, without a rule each: those that are due, whose job has the claim and to which
-- nothing has happened. All are held until the same time. Each belongs to a group, which has the claim, provider and timeline.
-- Returns the items (1, 2, …) that were left out.
CREATE OR REPLACE FUNCTION carteiro.declare_first(
    p_id text[], p_group integer[], p_claim text[], p_provider text[], p_until bigint, p_timeline text[],
    p_has_jobs boolean, p_now bigint
) RETURNS integer[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_stored bigint[];
    v_leased bigint[];
    v_claim text[]; v_tenant text[]; v_kind text[];
    v_is_short boolean; -- a lease ends later than the hold
BEGIN
    LOOP
        BEGIN
            WITH held AS MATERIALIZED (
                SELECT m.no, m.tenant, m.kind, m.created_at, m.due_at, m.ttl_ms, a.place
                FROM unnest(p_id, p_group) AS a (id, place)
                JOIN carteiro.messages AS m ON m.id = a.id
                WHERE
                    m.due_at <= p_now AND p_now < m.due_at + m.ttl_ms
                    AND NOT EXISTS (SELECT FROM carteiro.entries AS e WHERE e.message_no = m.no)
                    -- A change requested by SQL comes before the next attempt.
                    AND NOT EXISTS (SELECT FROM carteiro.queue_changes AS c WHERE c.message_no = m.no AND c.what <> 'limit')
                ORDER BY m.no
            ),
            added AS (
                INSERT INTO carteiro.entries (
                    message_no, version, state, due_at, expires_at, attempts, holder, held_until, provider, tenant, is_email,
                    created_at, timeline
                )
                SELECT
                    h.no, 2, 'SENT_ATTEMPT', h.due_at, h.due_at + h.ttl_ms, 1, p_claim[h.place], p_until, p_provider[h.place],
                    h.tenant, h.kind = 'email:send', h.created_at, p_timeline[h.place]
                FROM held AS h
            )
            SELECT coalesce(array_agg(h.no), '{}'), array_agg(p_claim[h.place]), array_agg(h.tenant), array_agg(h.kind),
                EXISTS (SELECT FROM carteiro.leased AS l WHERE l.claim_id = ANY (p_claim) AND l.parked_until > p_until)
            INTO v_stored, v_claim, v_tenant, v_kind, v_is_short
            FROM held AS h;
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            PERFORM carteiro.sees_others(); -- an entry was added meanwhile: the next time it is seen
        END;
    END LOOP;
    IF NOT p_has_jobs THEN
        RETURN carteiro.left_out(p_id, v_stored);
    END IF;
    -- It locks claims after entries, as a cancel does: else each would wait for the other.
    IF NOT v_is_short THEN
        -- This lock lets others settle attempts of the same claims, but not take jobs from them.
        PERFORM 1 FROM carteiro.claims AS c WHERE c.id = ANY (p_claim) ORDER BY c.id FOR KEY SHARE;
        SELECT coalesce(array_agg(f.no), '{}'), coalesce(bool_or(f.parked_until > p_until), false) INTO v_leased, v_is_short
        FROM (
            SELECT l.claim_id, l.parked_until, unnest(l.numbers) AS no FROM carteiro.leased AS l WHERE l.claim_id = ANY (p_claim)
        ) AS f
        WHERE ((f.no, f.claim_id) IN (SELECT s.no, s.claim FROM unnest(v_stored, v_claim) AS s (no, claim))) IS TRUE;
    END IF;
    IF v_is_short THEN
        v_leased := carteiro.move_leases(v_stored, v_claim, v_tenant, v_kind, p_until, false);
    END IF;
    IF cardinality(v_leased) < cardinality(v_stored) THEN -- leases were taken meanwhile: these attempts are not made
        DELETE FROM carteiro.entries AS e WHERE e.message_no = ANY (v_stored) AND e.message_no <> ALL (v_leased);
    END IF;
    RETURN carteiro.left_out(p_id, v_leased);
END
$$;

-- The event of a sent message, as a timeline has it.
CREATE OR REPLACE FUNCTION carteiro.sent_event(
    p_head text, p_provider_id text, p_provider text, p_duration_ms bigint, p_attempts integer
) RETURNS text
LANGUAGE sql STABLE -- so that it is inlined, as what it calls
AS $$
    SELECT p_head || CASE WHEN p_provider_id = '' THEN '""' ELSE to_json(p_provider_id)::text END || p_provider
        || p_duration_ms || ',"attempt":' || p_attempts || '}],'
$$;

-- Stores sent messages, without a rule each: those whose job has the claim, that were never redriven and whose timeline has
-- room (p_most); of a kind that declares, only a declared attempt. Each belongs to a group, which has the claim, the
-- provider and 1 if an attempt is to be counted. Without p_has_jobs a separate queue has the jobs: then a declared attempt
-- needs a live hold of its claim. Returns the items (1, 2, …) that were left out; `has_work`: a job may be claimed sooner
-- than before.
CREATE OR REPLACE FUNCTION carteiro.settle_sent(
    p_id text[], p_group integer[], p_duration_ms bigint[], p_provider_id text[], p_claim text[], p_provider text[],
    p_attempted integer[], p_most integer, p_longest bigint, p_has_jobs boolean, p_now bigint,
    OUT left_out integer[], OUT has_work boolean
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_head text := format('["SENT",%s,{"sesMessageId":', p_now);
    v_provider text[] := ARRAY(SELECT format(',"provider":%s,"durationMs":', to_json(p)) FROM unnest(p_provider) AS p);
    v_checks boolean := false; -- each lease before it is dropped
    v_stored bigint[];
    v_claim text[]; v_tenant text[]; v_kind text[];
    v_dropped record;
BEGIN
    has_work := false;
    LOOP
        BEGIN
            WITH held AS MATERIALIZED (
                SELECT
                    m.no, m.tenant, m.kind, m.created_at, m.due_at, m.template_type, a.duration_ms, a.place, e.retry_of,
                    coalesce(a.provider_id, '') AS provider_id, e.ctid AS entry, e.version,
                    coalesce(e.expires_at, m.due_at + m.ttl_ms) AS expires_at,
                    coalesce(e.attempts, 0) + p_attempted[a.place] AS attempts
                FROM unnest(p_id, p_group, p_duration_ms, p_provider_id) AS a (id, place, duration_ms, provider_id)
                JOIN carteiro.messages AS m ON m.id = a.id
                LEFT JOIN carteiro.entries AS e ON e.message_no = m.no
                WHERE
                    CASE
                        WHEN v_checks THEN EXISTS (SELECT FROM carteiro.lease_in(p_claim[a.place], m.no, m.tenant, m.kind))
                        WHEN p_has_jobs THEN true
                        ELSE
                            e.message_no IS NULL
                            OR e.state = 'SENT_ATTEMPT' AND e.holder = p_claim[a.place]
                            AND e.held_until > p_now AND e.held_until <= p_now + p_longest
                    END
                    AND (
                        NOT m.declares AND e.message_no IS NULL
                        OR e.finished_at IS NULL AND e.round = 1 AND length(e.timeline) < p_most
                        AND (e.state = 'SENT_ATTEMPT' OR NOT m.declares)
                    )
                ORDER BY m.no
            ),
            changed AS (
                UPDATE carteiro.entries AS e
                SET version = e.version + 1, state = 'SENT', attempts = h.attempts, holder = p_claim[h.place], held_until = NULL,
                    provider = p_provider[h.place], provider_message_id = h.provider_id, failure = NULL,
                    duration_ms = h.duration_ms, finished_at = p_now,
                    timeline = e.timeline
                        || carteiro.sent_event(v_head, h.provider_id, v_provider[h.place], h.duration_ms, h.attempts)
                FROM held AS h
                -- Not by number: without statistics all entries might be read.
                WHERE h.entry IS NOT NULL AND e.ctid = h.entry AND e.version = h.version
                RETURNING e.message_no
            ),
            added AS (
                INSERT INTO carteiro.entries (
                    message_no, version, state, due_at, expires_at, attempts, holder, provider, provider_message_id, duration_ms,
                    finished_at, tenant, is_email, created_at, timeline
                )
                SELECT
                    h.no, 2, 'SENT', h.due_at, h.expires_at, h.attempts, p_claim[h.place], p_provider[h.place], h.provider_id,
                    h.duration_ms, p_now, h.tenant, h.kind = 'email:send', h.created_at,
                    carteiro.sent_event(v_head, h.provider_id, v_provider[h.place], h.duration_ms, h.attempts)
                FROM held AS h
                WHERE h.entry IS NULL
            ),
            sent AS MATERIALIZED (
                SELECT
                    h.no, h.place, h.tenant, h.kind, h.expires_at, h.template_type, h.attempts, h.duration_ms, h.retry_of,
                    greatest(0, p_now - h.due_at) AS delay
                FROM held AS h
                WHERE
                    h.entry IS NULL
                    OR (SELECT count(*) FROM changed) = (SELECT count(*) FROM held AS o WHERE o.entry IS NOT NULL)
                    OR h.no = ANY (ARRAY(SELECT c.message_no FROM changed AS c))
            ),
            ended AS (
                DELETE FROM carteiro.unfinished AS u USING sent AS s
                WHERE u.expires_at = s.expires_at AND u.message_no = s.no
            ),
            noted AS (
                INSERT INTO carteiro.rollup_notes (what, at, figures)
                SELECT 'sent', p_now, json_agg(CASE WHEN g.retry_of IS NULL THEN json_build_array(
                    g.tenant, g.template_type, g.provider, g.attempts, g.slot, g.count, g.delays, g.waits
                ) ELSE json_build_array(
                    g.tenant, g.template_type, g.provider, g.attempts, g.slot, g.retry_of, g.count, g.delays, g.waits
                ) END)
                FROM (
                    SELECT s.tenant, s.template_type, p_provider[s.place] AS provider, s.attempts, s.retry_of,
                        width_bucket(s.delay, ARRAY[{delays}]::bigint[]) AS slot, count(*), sum(s.delay) AS delays,
                        sum(greatest(0, s.delay - s.duration_ms)) AS waits
                    FROM sent AS s
                    GROUP BY s.tenant, s.template_type, provider, s.attempts, s.retry_of, slot
                ) AS g
                HAVING count(*) > 0
            )
            SELECT coalesce(array_agg(s.no), '{}'), array_agg(p_claim[s.place]), array_agg(s.tenant), array_agg(s.kind)
            INTO v_stored, v_claim, v_tenant, v_kind
            FROM sent AS s;
            EXIT WHEN NOT p_has_jobs;
            v_dropped := carteiro.drop_leases(v_stored, v_claim, v_tenant, v_kind);
            -- The job of a lease that has just expired is ready again: it is found stale when it is claimed.
            EXIT WHEN v_checks OR v_dropped.o_jobs = cardinality(v_stored);
            RAISE SQLSTATE 'CT001';
        EXCEPTION
            WHEN unique_violation THEN PERFORM carteiro.sees_others(); -- an entry was added meanwhile: the next time it is seen
            WHEN SQLSTATE 'CT001' THEN v_checks := true; -- not all of them are leased
        END;
    END LOOP;
    IF p_has_jobs THEN
        INSERT INTO carteiro.notes (kind, tenant, wake_at)
        SELECT '', t.id, p_now FROM carteiro.tenants AS t WHERE t.id = ANY (v_dropped.o_tenants) AND t.cap IS NOT NULL;
        has_work := FOUND;
    END IF;
    left_out := carteiro.left_out(p_id, v_stored);
END
$$;

-- True if a dead letter matches the filter; null matches all. The planner puts it into the statement, which is ten times as fast
-- as a call for each row, only while it asks no table itself.
CREATE OR REPLACE FUNCTION carteiro.is_wanted(
    d carteiro.dead_letters, p_tenant text, p_kind text, p_reason text, p_code text, p_category text, p_group text,
    p_is_redriven boolean, p_text text
) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT
        (p_tenant IS NULL OR d.tenant = p_tenant) AND (p_kind IS NULL OR d.kind = p_kind)
        AND (p_reason IS NULL OR d.reason = p_reason) AND (p_code IS NULL OR d.code = p_code)
        AND (p_category IS NULL OR d.category = p_category) AND (p_group IS NULL OR d.failure_group = p_group)
        AND (p_is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = p_is_redriven)
        AND (p_text IS NULL OR strpos(d.said, p_text) > 0)
$$;
