-- --- the arithmetic of send rates, as in policy/pacing.py ---------------------------------------

-- The start of a record; if it is further ahead than a full draw can put it, the clock was set back.
CREATE OR REPLACE FUNCTION carteiro.pace_due(next_us bigint, now_us bigint, interval_us bigint, burst_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN next_us > now_us + burst_us + interval_us THEN now_us ELSE greatest(next_us, now_us) END $$;

CREATE OR REPLACE FUNCTION carteiro.pace_tokens(next_us bigint, now_us bigint, interval_us bigint, burst_us bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_spare bigint := now_us + burst_us - carteiro.pace_due(next_us, now_us, interval_us, burst_us);
BEGIN
    RETURN CASE WHEN v_spare < 0 THEN 0 ELSE v_spare / interval_us + 1 END;
END
$$;

-- --- the arithmetic of send limits, as in policy/pacing.py: draws are [[time, jobs, claim], …], oldest first ------------

-- The number of jobs that may start.
CREATE OR REPLACE FUNCTION carteiro.sends_left(p_draws text, p_count bigint, p_per_ms bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT greatest(0, p_count - coalesce(sum((d.draw ->> 1)::bigint), 0))::bigint
    FROM json_array_elements(p_draws::json) AS d (draw)
    WHERE (d.draw ->> 0)::bigint + p_per_ms > p_now
$$;

-- The time at which the next job may start.
CREATE OR REPLACE FUNCTION carteiro.next_send_at(p_draws text, p_count bigint, p_per_ms bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT coalesce(min(l.until), p_now)
    FROM (
        SELECT (d.draw ->> 0)::bigint + p_per_ms AS until,
            sum((d.draw ->> 1)::bigint) OVER (ORDER BY d.place DESC) - (d.draw ->> 1)::bigint AS later
        FROM json_array_elements(p_draws::json) WITH ORDINALITY AS d (draw, place)
        WHERE (d.draw ->> 0)::bigint + p_per_ms > p_now
    ) AS l
    WHERE l.later < p_count
$$;

-- The draws that count after a claim drew p_jobs jobs: close ones are merged where there may be more than
-- p_most.
CREATE OR REPLACE FUNCTION carteiro.drawn(
    p_draws text, p_count bigint, p_per_ms bigint, p_now bigint, p_jobs bigint, p_claim text, p_most bigint
) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_width bigint := greatest(1, p_per_ms / p_most);
    v_live json[];
    v_last json;
    v_at bigint := p_now;
    v_jobs bigint := p_jobs;
BEGIN
    v_live := ARRAY(
        SELECT d.draw FROM json_array_elements(p_draws::json) WITH ORDINALITY AS d (draw, place)
        WHERE (d.draw ->> 0)::bigint + p_per_ms > p_now
        ORDER BY d.place
    );
    v_last := v_live[cardinality(v_live)];
    IF v_last IS NOT NULL THEN
        v_at := greatest(p_now, (v_last ->> 0)::bigint);
        IF p_count > p_most AND v_at / v_width = (v_last ->> 0)::bigint / v_width THEN
            v_jobs := p_jobs + (v_last ->> 1)::bigint;
            v_live := v_live[:cardinality(v_live) - 1];
        END IF;
    END IF;
    RETURN array_to_json(v_live || json_build_array(v_at, v_jobs, p_claim))::text;
END
$$;

-- The draws after a claim gave jobs back.
CREATE OR REPLACE FUNCTION carteiro.undrawn(p_draws text, p_claim text, p_jobs bigint) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT coalesce(json_agg(json_build_array((l.draw ->> 0)::bigint, l.jobs, l.draw ->> 2) ORDER BY l.place), '[]')::text
    FROM (
        SELECT d.draw, d.place,
            (d.draw ->> 1)::bigint - CASE WHEN d.draw ->> 2 = p_claim THEN p_jobs ELSE 0 END AS jobs
        FROM json_array_elements(p_draws::json) WITH ORDINALITY AS d (draw, place)
    ) AS l
    WHERE l.jobs > 0
$$;

-- The draws after the clock was set back: those in the future move to now.
CREATE OR REPLACE FUNCTION carteiro.stepped_back(p_draws text, p_now bigint) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT coalesce(
        json_agg(json_build_array(least((d.draw ->> 0)::bigint, p_now), (d.draw ->> 1)::bigint, d.draw ->> 2) ORDER BY d.place),
        '[]'
    )::text
    FROM json_array_elements(p_draws::json) WITH ORDINALITY AS d (draw, place)
$$;

-- Leases at most p_limit ready jobs of these kinds, tenants taking turns by virtual time (docs/explanation/fairness.md).
-- Always at least one row: o_now and o_idle_ms (when to come again; NULL: nothing is known to come) are the same in all,
-- o_no is NULL where nothing was leased. The walk is that of the other stores; it counts and ranks nothing but what it takes.
-- The messages' content is read afterwards: nobody waits for the ring during that.
CREATE OR REPLACE FUNCTION carteiro.claim(
    p_kinds text[], p_limit integer, p_claim text, p_lease_ms bigint, p_batch integer, p_in_turns boolean,
    p_readied integer, p_suspect integer, p_draws bigint, p_longest bigint, p_jitter bigint, p_now bigint
) RETURNS TABLE (
    o_now bigint, o_idle_ms bigint, o_no bigint, o_id text, o_kind text, o_tenant text, o_claims integer, o_preset text
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    v_seen pg_snapshot;
    v_now bigint;
    v_until bigint;
    v_batch integer := p_batch;
    v_in_turns boolean := p_in_turns;
    v_tuned json;
    v_size integer;
    v_v bigint := 0;
    v_turn bigint := 0;
    v_seen_at bigint := 0;
    v_over boolean := false;
    v_is_look boolean;
    v_changed boolean := false;
    v_got integer := 0;
    -- kinds
    k_count integer := cardinality(p_kinds);
    k_most bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_kinds)]); -- of its send limit
    k_per bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_kinds)]);
    k_draws text[] := array_fill('[]'::text, ARRAY[cardinality(p_kinds)]);
    k_left bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_kinds)]); -- no limit: NULL
    k_sends bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_kinds)]);
    k_least bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_kinds)]);
    k_tid tid[] := array_fill(NULL::tid, ARRAY[cardinality(p_kinds)]);
    k_v bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_kinds)]);
    k_seen bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_kinds)]);
    k_lost bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_kinds)]);     -- no lease ends before it
    k_far boolean[] := array_fill(false, ARRAY[cardinality(p_kinds)]);         -- some end later than any can
    k_vt bigint[] := array_fill(-1::bigint, ARRAY[cardinality(p_kinds)]);      -- where the last page ended
    k_last bigint[] := array_fill(-1::bigint, ARRAY[cardinality(p_kinds)]);
    k_tenant text[] := array_fill(''::text, ARRAY[cardinality(p_kinds)]);
    k_done boolean[] := array_fill(false, ARRAY[cardinality(p_kinds)]);
    k_front integer[] := array_fill(NULL::integer, ARRAY[cardinality(p_kinds)]); -- its next seat that had no turn yet
    -- seats, in the order in which they were looked up; s_after: the next of its kind
    s_count integer := 0; s_tid tid[];
    s_k integer[]; s_t integer[]; s_after integer[];
    s_vt bigint[]; s_last bigint[]; s_in_turn bigint[]; s_processed bigint[];
    s_rank bigint[]; s_id text[]; -- its last job that was taken, or where its jobs begin
    s_next integer[]; s_end integer[]; s_more boolean[]; -- its first jobs in b_; whether it has more
    s_due_from bigint[];
    s_due boolean[]; s_readied boolean[]; s_again boolean[];
    s_served integer[]; s_alarm bigint[]; s_capped boolean[]; s_idle boolean[];
    s_moved boolean[];
    -- seats that had a turn and stay in the ring, from r_first to r_last in the order of their next turns
    v_ring integer[] := '{}'; r_first integer := 1; r_last integer := 0;
    v_line integer[] := '{}';  -- without turns: seats that may have a job
    -- tenants
    t_count integer := 0;
    t_id text[]; t_stride bigint[]; t_cap integer[]; t_interval bigint[];
    t_burst bigint[]; t_next bigint[]; t_held boolean[];
    t_preset text[]; t_flight integer[]; t_over bigint[]; t_drew boolean[];
    -- the first jobs of the seats, as far as they were looked up
    b_no bigint[] := '{}'; b_id text[] := '{}'; b_rank bigint[] := '{}';
    b_claims integer[] := '{}'; b_tid tid[] := '{}'; h_seat integer[]; v_looked integer; v_taken text[];
    v_claims integer := 0; -- the most claims of any of them
    -- turns: whose, and where in b_ its jobs are; then the jobs
    u_count integer := 0; u_seat integer[]; u_first integer[]; u_last integer[];
    j_seat integer[]; j_no bigint[]; j_id text[]; j_rank bigint[]; j_claims integer[]; j_tid tid[]; j_leased bigint[];
    v_first bigint;
    -- one turn
    v_seat integer; v_best integer; v_k integer; v_t integer; v_i integer; v_n integer;
    v_take integer; v_wanted bigint; v_readies integer;
    v_row record; v_due record;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true); -- a lost claim is harmless: no need to wait for the disk
    SELECT r.seen INTO v_seen FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1 FOR UPDATE; -- as `lock_ring`
    v_now := coalesce(p_now, carteiro.now_ms());
    IF pg_snapshot_xmax(v_seen) > pg_snapshot_xmax(pg_current_snapshot()) THEN -- restored while we were connected
        PERFORM carteiro.rebuild_ring(v_now);
    END IF;

    SELECT o.setting::json INTO v_tuned FROM carteiro.overrides AS o WHERE o.name = 'fairness';
    IF v_tuned IS NOT NULL THEN
        v_batch := (v_tuned ->> 'max_jobs_per_tenant_batch')::integer;
        v_in_turns := (v_tuned ->> 'enable_round_robin')::boolean;
    END IF;

    -- Clocks and send limits.
    FOR v_k IN 1..k_count LOOP
        LOOP
            SELECT c.ctid AS place, c.v, c.turn, c.seen_at, c.draws, c.least_vt, c.lost_from, c.limit_count, c.limit_per_ms
            INTO v_row
            FROM carteiro.ring_clock AS c
            WHERE c.kind = p_kinds[v_k]
            ORDER BY c.n DESC LIMIT 1;
            EXIT WHEN FOUND;
            INSERT INTO carteiro.ring_clock (kind) VALUES (p_kinds[v_k]);
        END LOOP;
        v_v := greatest(v_v, v_row.v);
        v_turn := greatest(v_turn, v_row.turn);
        v_seen_at := greatest(v_seen_at, v_row.seen_at);
        k_tid[v_k] := v_row.place;
        k_v[v_k] := v_row.v;
        k_seen[v_k] := v_row.seen_at;
        k_least[v_k] := v_row.least_vt;
        k_lost[v_k] := v_row.lost_from;
        k_draws[v_k] := v_row.draws;
        k_most[v_k] := v_row.limit_count;
        k_per[v_k] := v_row.limit_per_ms;
        IF v_row.limit_count IS NOT NULL THEN
            k_left[v_k] := carteiro.sends_left(v_row.draws, v_row.limit_count, v_row.limit_per_ms, v_now);
        END IF;
    END LOOP;

    FOR v_row IN SELECT o_kind AS kind, o_lease_end AS lease_end FROM carteiro.read_notes(p_jitter) LOOP
        v_k := array_position(p_kinds, v_row.kind);
        IF v_k IS NOT NULL THEN
            k_lost[v_k] := least(k_lost[v_k], v_row.lease_end);
            v_changed := true;
        ELSE
            UPDATE carteiro.ring_clock AS c SET n = c.n + 1, lost_from = least(c.lost_from, v_row.lease_end)
            WHERE c.kind = v_row.kind;
        END IF;
    END LOOP;
    IF v_now < v_seen_at - p_jitter THEN -- the clock stepped back: alarms mean nothing
        UPDATE carteiro.seats AS s
        SET n = s.n + 1, wake_at = CASE WHEN s.wake_at IS NOT NULL THEN v_now END, due_from = 0
        WHERE s.kind = ANY (p_kinds);
        k_seen := array_fill(0::bigint, ARRAY[k_count]);
        k_lost := array_fill(0::bigint, ARRAY[k_count]);
        FOR v_k IN 1..k_count LOOP
            k_draws[v_k] := carteiro.stepped_back(k_draws[v_k], v_now);
        END LOOP;
        v_changed := true;
    END IF;

    FOR v_k IN 1..k_count LOOP
        -- From when on leases end: what is gone is not walked over again.
        SELECT l.parked_until INTO v_first FROM carteiro.leased AS l
        WHERE l.kind = p_kinds[v_k] AND l.parked_until >= k_lost[v_k]
        ORDER BY l.parked_until LIMIT 1;
        v_first := coalesce(v_first, c_far);
        v_changed := v_changed OR v_first <> k_lost[v_k];
        k_lost[v_k] := v_first;
        k_far[v_k] := EXISTS (
            SELECT FROM carteiro.leased AS l WHERE l.kind = p_kinds[v_k] AND l.parked_until > v_now + p_longest
            ORDER BY l.parked_until LIMIT 1 -- so that this index is taken, whatever the planner thinks
        );
        -- Seats whose alarm has rung take their place, no further back than V; a paused or disabled tenant sleeps on.
        FOR v_row IN
            WITH due AS MATERIALIZED (
                SELECT s.ctid AS place FROM carteiro.seats AS s
                WHERE s.kind = p_kinds[v_k] AND s.wake_at >= k_seen[v_k] - p_jitter AND s.wake_at <= v_now
            )
            UPDATE carteiro.seats AS s
            SET n = s.n + 1,
                vt = CASE WHEN t.paused OR t.disabled THEN s.vt ELSE greatest(s.vt, k_v[v_k]) END,
                since_turn = v_turn,
                wake_at = CASE WHEN t.paused OR t.disabled THEN c_far END
            FROM due, carteiro.tenants AS t
            WHERE s.ctid = due.place AND t.id = s.tenant
            RETURNING s.vt, s.wake_at
        LOOP
            v_changed := true;
            IF v_row.wake_at IS NULL THEN
                k_least[v_k] := least(k_least[v_k], v_row.vt);
            END IF;
        END LOOP;
    END LOOP;

    v_until := v_now + p_lease_ms;
    v_size := greatest(8, (p_limit + v_batch - 1) / v_batch);
    IF NOT v_in_turns THEN
        v_batch := 1;
        v_size := 2147483647;
    END IF;

    WHILE p_limit > v_got AND NOT v_over LOOP
        -- The next page of each kind whose seats all had a turn.
        FOR v_k IN 1..k_count LOOP
            IF k_front[v_k] IS NULL AND NOT k_done[v_k] THEN
                v_n := 0;
                FOR v_row IN
                    SELECT s.ctid AS place, s.tenant, s.vt, s.last_turn, s.processed, s.lowest, s.due_from,
                        t.stride, t.cap, t.rate_per_second, t.next_token_us, t.paused OR t.disabled AS is_held,
                        t.retry_preset,
                        EXISTS (
                            SELECT FROM carteiro.delayed AS d
                            WHERE
                                d.tenant = s.tenant AND d.kind = s.kind
                                AND d.parked_until >= s.due_from AND d.parked_until <= v_now
                        ) OR (k_lost[v_k] <= v_now AND EXISTS (
                            SELECT FROM carteiro.leased AS l
                            WHERE
                                (l.tenant, l.kind, l.parked_until) >= (s.tenant, s.kind, k_lost[v_k])
                                AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, v_now)
                        )) OR (k_far[v_k] AND EXISTS (
                            SELECT FROM carteiro.leased AS l
                            WHERE
                                (l.tenant, l.kind, l.parked_until) > (s.tenant, s.kind, v_now + p_longest)
                                AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, c_far)
                        )) AS may_be_due
                    FROM carteiro.seats AS s JOIN carteiro.tenants AS t ON t.id = s.tenant
                    WHERE
                        s.kind = p_kinds[v_k] AND s.wake_at IS NULL AND s.vt >= k_least[v_k]
                        AND (s.vt, s.last_turn, s.tenant) > (k_vt[v_k], k_last[v_k], k_tenant[v_k])
                    ORDER BY s.vt, s.last_turn, s.tenant
                    LIMIT v_size
                LOOP
                    v_n := v_n + 1;
                    v_t := array_position(t_id, v_row.tenant);
                    IF v_t IS NULL THEN
                        t_count := t_count + 1;
                        v_t := t_count;
                        t_id[v_t] := v_row.tenant;
                        t_stride[v_t] := v_row.stride;
                        t_cap[v_t] := v_row.cap;
                        t_interval[v_t] := greatest(1, round(1000000 / v_row.rate_per_second)::bigint);
                        t_burst[v_t] := greatest(0, 1000000 - t_interval[v_t]);
                        IF v_row.rate_per_second IS NULL THEN
                            t_interval[v_t] := NULL;
                        END IF;
                        t_next[v_t] := v_row.next_token_us;
                        t_held[v_t] := v_row.is_held;
                        t_preset[v_t] := v_row.retry_preset;
                        t_flight[v_t] := NULL;
                        t_over[v_t] := NULL;
                        t_drew[v_t] := false;
                    END IF;
                    s_count := s_count + 1;
                    s_k[s_count] := v_k;
                    s_t[s_count] := v_t;
                    s_after[s_count] := NULL;
                    s_vt[s_count] := v_row.vt;
                    s_last[s_count] := v_row.last_turn;
                    s_in_turn[s_count] := NULL;
                    s_processed[s_count] := v_row.processed;
                    s_rank[s_count] := v_row.lowest;
                    s_id[s_count] := '';
                    s_next[s_count] := 1;
                    s_end[s_count] := 0;
                    s_more[s_count] := true;
                    s_due_from[s_count] := v_row.due_from;
                    s_tid[s_count] := v_row.place;
                    s_due[s_count] := v_row.may_be_due;
                    s_readied[s_count] := false;
                    s_again[s_count] := false;
                    s_served[s_count] := 0;
                    s_alarm[s_count] := NULL;
                    s_capped[s_count] := false;
                    s_idle[s_count] := false;
                    s_moved[s_count] := false;
                    IF v_n = 1 THEN
                        k_front[v_k] := s_count;
                    ELSE
                        s_after[s_count - 1] := s_count;
                    END IF;
                    k_vt[v_k] := v_row.vt;
                    k_last[v_k] := v_row.last_turn;
                    k_tenant[v_k] := v_row.tenant;
                END LOOP;
                k_done[v_k] := v_n < v_size;
                CONTINUE WHEN v_n = 0;
                -- Their first jobs, as many as they are likely to be given in whole turns, and one more.
                v_looked := ((p_limit - v_got + v_n - 1) / v_n + v_batch - 1) / v_batch * v_batch + 1;
                v_i := cardinality(b_no);
                SELECT array_agg(h.seat), b_no || array_agg(h.message_no),
                    b_id || array_agg(h.id), b_rank || array_agg(h.rank), b_claims || array_agg(h.claims),
                    b_tid || array_agg(h.place), greatest(v_claims, max(h.claims))
                INTO h_seat, b_no, b_id, b_rank, b_claims, b_tid, v_claims
                FROM (
                    SELECT n.seat, r.message_no, r.id, r.rank, r.claims, r.place
                    FROM generate_series(s_count - v_n + 1, s_count) AS n (seat)
                    CROSS JOIN LATERAL (
                        SELECT r.message_no, r.id, r.rank, r.claims, r.ctid AS place
                        FROM carteiro.ready AS r
                        WHERE
                            r.tenant = t_id[s_t[n.seat]] AND r.kind = p_kinds[v_k]
                            AND r.rank >= s_rank[n.seat]
                        ORDER BY r.rank, r.id
                        LIMIT v_looked
                    ) AS r
                    WHERE NOT s_due[n.seat] -- else more come before them
                    ORDER BY n.seat, r.rank, r.id
                ) AS h;
                FOR v_row IN
                    SELECT h.seat, min(h.place) + v_i AS first, max(h.place) + v_i AS last
                    FROM unnest(h_seat) WITH ORDINALITY AS h (seat, place)
                    GROUP BY h.seat
                LOOP
                    s_next[v_row.seat] := v_row.first;
                    s_end[v_row.seat] := v_row.last;
                END LOOP;
                FOR v_seat IN s_count - v_n + 1..s_count LOOP
                    s_more[v_seat] := s_due[v_seat] OR s_end[v_seat] - s_next[v_seat] + 1 = v_looked;
                END LOOP;
            END IF;
        END LOOP;

        -- The next turn.
        v_best := NULL;
        v_is_look := false;
        IF v_in_turns THEN
            FOR v_k IN 1..k_count LOOP
                v_seat := k_front[v_k];
                IF v_seat IS NOT NULL AND (v_best IS NULL OR
                    (s_vt[v_seat], s_last[v_seat], t_id[s_t[v_seat]] COLLATE "C", p_kinds[s_k[v_seat]] COLLATE "C")
                    < (s_vt[v_best], s_last[v_best], t_id[s_t[v_best]] COLLATE "C", p_kinds[s_k[v_best]] COLLATE "C"))
                THEN
                    v_best := v_seat;
                END IF;
            END LOOP;
            IF r_first <= r_last THEN
                v_seat := v_ring[r_first];
                IF v_best IS NULL OR s_vt[v_seat] < s_vt[v_best] OR (s_vt[v_seat] = s_vt[v_best] AND
                    (s_last[v_seat], t_id[s_t[v_seat]] COLLATE "C", p_kinds[s_k[v_seat]] COLLATE "C")
                    < (s_last[v_best], t_id[s_t[v_best]] COLLATE "C", p_kinds[s_k[v_best]] COLLATE "C"))
                THEN
                    v_best := v_seat;
                END IF;
            END IF;
            EXIT WHEN v_best IS NULL;
            v_k := s_k[v_best];
            IF k_front[v_k] = v_best THEN
                k_front[v_k] := s_after[v_best];
            ELSE
                r_first := r_first + 1;
            END IF;
            IF k_left[v_k] <= 0 THEN
                k_done[v_k] := true; -- its seats stay where they are: this kind is over for now
                k_front[v_k] := NULL;
                CONTINUE;
            END IF;
        ELSE
            -- First in, first out: always the oldest job, one at a time.
            FOR v_k IN 1..k_count LOOP
                WHILE k_front[v_k] IS NOT NULL LOOP
                    v_line := v_line || k_front[v_k];
                    k_front[v_k] := s_after[k_front[v_k]];
                END LOOP;
            END LOOP;
            FOREACH v_seat IN ARRAY v_line LOOP
                v_k := s_k[v_seat];
                CONTINUE WHEN k_left[v_k] <= 0;
                IF s_next[v_seat] > s_end[v_seat] THEN -- its first job is not known
                    v_best := v_seat;
                    v_is_look := true;
                    EXIT;
                END IF;
                IF v_best IS NULL OR (b_rank[s_next[v_seat]], b_id[s_next[v_seat]] COLLATE "C")
                    < (b_rank[s_next[v_best]], b_id[s_next[v_best]] COLLATE "C")
                THEN
                    v_best := v_seat;
                END IF;
            END LOOP;
            EXIT WHEN v_best IS NULL;
            v_k := s_k[v_best];
        END IF;

        -- The number of jobs that it may take; if none, it leaves the ring until it may.
        v_seat := v_best;
        v_t := s_t[v_seat];
        v_wanted := least(v_batch, p_limit - v_got);
        IF v_is_look THEN
            NULL;
        ELSIF t_held[v_t] THEN
            s_alarm[v_seat] := c_far;
        ELSE
            v_wanted := least(v_wanted, k_left[v_k]);
            IF t_cap[v_t] IS NOT NULL THEN
                IF t_flight[v_t] IS NULL THEN
                    SELECT count(l.message_no) AS jobs, min(l.parked_until) AS first_over INTO v_row
                    FROM carteiro.ring_clock AS c JOIN carteiro.leased AS l
                        ON
                            (l.tenant, l.kind, l.parked_until) > (t_id[v_t], c.kind, v_now)
                            AND (l.tenant, l.kind, l.parked_until) <= (t_id[v_t], c.kind, v_now + p_longest);
                    t_flight[v_t] := v_row.jobs;
                    t_over[v_t] := v_row.first_over;
                END IF;
                v_wanted := least(v_wanted, t_cap[v_t] - t_flight[v_t]);
                IF v_wanted <= 0 THEN
                    s_capped[v_seat] := true;
                    s_alarm[v_seat] := coalesce(t_over[v_t], c_far);
                END IF;
            END IF;
            IF s_alarm[v_seat] IS NULL AND t_interval[v_t] IS NOT NULL THEN
                v_wanted := least(v_wanted,
                    carteiro.pace_tokens(t_next[v_t], v_now * 1000, t_interval[v_t], t_burst[v_t]));
                IF v_wanted <= 0 THEN
                    s_alarm[v_seat] := (t_next[v_t] - t_burst[v_t] + 999) / 1000;
                END IF;
            END IF;
        END IF;
        IF s_alarm[v_seat] IS NOT NULL THEN
            s_moved[v_seat] := true;
            v_line := array_remove(v_line, v_seat);
            CONTINUE;
        END IF;

        -- Its jobs, and whether there are more; due ones are readied first, a bounded number of them a turn.
        v_readies := 2;
        LOOP
            v_n := s_end[v_seat] - s_next[v_seat] + 1;
            IF s_due[v_seat] AND (NOT s_readied[v_seat] OR (v_n < v_wanted AND NOT s_more[v_seat] AND v_readies > 0)) THEN
                v_readies := v_readies - 1;
                SELECT r.readied, r.least_rank INTO v_due FROM carteiro.ready_due(
                    p_kinds[v_k], t_id[v_t], s_due_from[v_seat], k_lost[v_k], p_longest, v_now, p_readied) AS r;
                s_readied[v_seat] := true;
                s_due[v_seat] := v_due.readied = p_readied;
                s_moved[v_seat] := true;
                s_end[v_seat] := s_next[v_seat] - 1; -- what was looked up lacks them
                s_more[v_seat] := true;
                IF v_due.readied > 0 AND v_due.least_rank <= s_rank[v_seat] THEN
                    s_rank[v_seat] := v_due.least_rank;
                    s_id[v_seat] := '';
                    s_again[v_seat] := s_served[v_seat] > 0; -- those that were taken are still among them
                END IF;
            ELSIF s_more[v_seat] AND v_n <= v_wanted THEN
                v_looked := greatest(v_wanted, (p_limit - v_got + s_count - 1) / s_count) + 1;
                v_taken := CASE WHEN s_again[v_seat] THEN ARRAY(
                    SELECT b_id[i] FROM unnest(u_first, u_last) AS u (first, last), generate_series(u.first, u.last) AS i
                ) ELSE '{}' END;
                s_next[v_seat] := cardinality(b_no) + 1;
                SELECT b_no || array_agg(h.message_no), b_id || array_agg(h.id), b_rank || array_agg(h.rank),
                    b_claims || array_agg(h.claims), b_tid || array_agg(h.place), greatest(v_claims, max(h.claims))
                INTO b_no, b_id, b_rank, b_claims, b_tid, v_claims
                FROM (
                    SELECT r.message_no, r.id, r.rank, r.claims, r.ctid AS place
                    FROM carteiro.ready AS r
                    WHERE
                        r.tenant = t_id[v_t] AND r.kind = p_kinds[v_k]
                        AND (r.rank, r.id) > (s_rank[v_seat], s_id[v_seat]) AND NOT r.id = ANY (v_taken)
                    ORDER BY r.rank, r.id
                    LIMIT v_looked
                ) AS h;
                s_end[v_seat] := cardinality(b_no);
                s_more[v_seat] := s_end[v_seat] - s_next[v_seat] + 1 = v_looked;
            ELSE
                EXIT;
            END IF;
        END LOOP;
        IF v_is_look AND v_n > 0 THEN
            CONTINUE;
        END IF;
        v_take := least(v_n, v_wanted);
        IF v_claims >= p_suspect THEN
            FOR v_i IN 1..v_take LOOP
                IF b_claims[s_next[v_seat] + v_i - 1] >= p_suspect THEN -- it keeps killing its workers: it is claimed alone
                    v_over := true;
                    v_take := CASE WHEN v_got = 0 AND v_i = 1 THEN 1 ELSE v_i - 1 END;
                    EXIT;
                END IF;
            END LOOP;
        END IF;

        IF v_take > 0 THEN
            IF v_in_turns THEN
                v_v := greatest(v_v, s_vt[v_seat]);
                v_turn := v_turn + 1;
                s_in_turn[v_seat] := v_take;
                s_last[v_seat] := v_turn;
                s_vt[v_seat] := s_vt[v_seat] + t_stride[v_t] -- SUSPECT_TURNS, as in policy/fairness.py
                    * CASE WHEN b_claims[s_next[v_seat]] >= p_suspect THEN 5 * v_batch ELSE v_take END;
            END IF;
            s_processed[v_seat] := s_processed[v_seat] + v_take;
            s_moved[v_seat] := true;
            v_i := s_next[v_seat] + v_take - 1;
            u_count := u_count + 1;
            u_seat[u_count] := v_seat;
            u_first[u_count] := s_next[v_seat];
            u_last[u_count] := v_i;
            v_got := v_got + v_take;
            s_served[v_seat] := s_served[v_seat] + v_take;
            s_rank[v_seat] := b_rank[v_i];
            s_id[v_seat] := b_id[v_i];
            s_next[v_seat] := v_i + 1;
            IF t_flight[v_t] IS NOT NULL THEN
                t_flight[v_t] := t_flight[v_t] + v_take;
            END IF;
            IF t_interval[v_t] IS NOT NULL THEN
                t_next[v_t] := carteiro.pace_due(t_next[v_t], v_now * 1000, t_interval[v_t], t_burst[v_t])
                    + v_take * t_interval[v_t];
                t_drew[v_t] := true;
            END IF;
            k_left[v_k] := k_left[v_k] - v_take;
            k_sends[v_k] := k_sends[v_k] + v_take;
        END IF;
        IF (v_n <= v_take AND NOT s_due[v_seat]) OR (v_take = 0 AND NOT v_over) THEN
            s_idle[v_seat] := true;
            s_alarm[v_seat] := c_far;
            s_moved[v_seat] := true;
        END IF;
        IF s_alarm[v_seat] IS NOT NULL THEN
            v_line := array_remove(v_line, v_seat);
        ELSIF v_in_turns THEN
            v_i := r_last;
            WHILE v_i >= r_first AND (s_vt[v_ring[v_i]], s_last[v_ring[v_i]]) > (s_vt[v_seat], s_last[v_seat]) LOOP
                v_ring[v_i + 1] := v_ring[v_i];
                v_i := v_i - 1;
            END LOOP;
            v_ring[v_i + 1] := v_seat;
            r_last := r_last + 1;
        END IF;
    END LOOP;

    -- Lease them.
    IF v_got > 0 THEN
        SELECT array_agg(u.seat), array_agg(b_no[i]), array_agg(b_id[i]), array_agg(b_rank[i]), array_agg(b_claims[i]),
            array_agg(b_tid[i])
        INTO j_seat, j_no, j_id, j_rank, j_claims, j_tid
        FROM unnest(u_seat, u_first, u_last) AS u (seat, first, last), generate_series(u.first, u.last) AS i;
        DELETE FROM carteiro.ready AS r WHERE r.ctid = ANY (j_tid);
        WITH leased AS (
            INSERT INTO carteiro.leased (message_no, id, kind, tenant, rank, parked_until, claim_id, claims)
            SELECT j.no, j.id, p_kinds[s_k[j.seat]], t_id[s_t[j.seat]], j.rank, v_until, p_claim, j.claims + 1
            FROM unnest(j_no, j_id, j_rank, j_claims, j_seat) AS j (no, id, rank, claims, seat)
            -- Skip jobs that another claim has. Only claim adds leases, one claim at a time.
            WHERE NOT EXISTS (SELECT FROM carteiro.leased AS l WHERE l.message_no = j.no OFFSET 0)
            RETURNING message_no
        )
        SELECT array_agg(l.message_no) INTO j_leased FROM leased AS l;
        IF true = ANY (t_drew) THEN
            UPDATE carteiro.tenants AS t SET next_token_us = d.next_us
            FROM unnest(t_id, t_next, t_drew) AS d (id, next_us, drew)
            WHERE t.id = d.id AND d.drew;
        END IF;
    END IF;

    -- The seats after their turns; an idle one is looked at again at the end of its first park, a capped one when a slot
    -- is free. A job that somebody else has leased is no longer this one's.
    IF true = ANY (s_moved) THEN
        v_changed := true;
        UPDATE carteiro.seats AS s
        SET n = s.n + 1, vt = m.vt, last_turn = m.last_turn, processed = m.processed, consecutive = coalesce(m.in_turn, s.consecutive),
            last_processed_at = CASE WHEN m.served > 0 THEN v_now ELSE s.last_processed_at END,
            jobs = s.jobs - m.taken_by_others,
            lowest = m.rank,
            due_from = CASE WHEN m.is_idle THEN least(coalesce(m.first_parked, v_now), v_now) ELSE s.due_from END,
            wake_at = CASE
                WHEN m.is_idle THEN greatest(v_now, least(
                    coalesce(m.first_parked, c_far), coalesce(m.first_leased, c_far), CASE WHEN m.is_far THEN v_now END
                ))
                WHEN m.is_capped AND m.tenant_served THEN least(m.alarm, v_until)
                WHEN m.alarm IS NOT NULL THEN greatest(v_now, m.alarm)
            END
        FROM (
            SELECT s_tid[i] AS place, s_vt[i] AS vt, s_last[i] AS last_turn,
                s_processed[i] AS processed, s_in_turn[i] AS in_turn, s_served[i] AS served, s_rank[i] AS rank,
                s_alarm[i] AS alarm, s_idle[i] AS is_idle, s_capped[i] AS is_capped,
                EXISTS (
                    SELECT FROM generate_subscripts(s_served, 1) AS o WHERE s_t[o] = s_t[i] AND s_served[o] > 0
                ) AS tenant_served,
                CASE WHEN cardinality(j_leased) = v_got OR v_got = 0 THEN 0 ELSE (
                    SELECT count(*) FROM unnest(j_no, j_seat) AS j (no, seat)
                    WHERE j.seat = i AND NOT j.no = ANY (coalesce(j_leased, '{}'))
                ) END AS taken_by_others,
                CASE WHEN s_idle[i] THEN (
                    SELECT d.parked_until FROM carteiro.delayed AS d
                    WHERE d.tenant = t_id[s_t[i]] AND d.kind = p_kinds[s_k[i]] AND d.parked_until >= s_due_from[i]
                    ORDER BY d.parked_until LIMIT 1
                ) END AS first_parked,
                CASE WHEN s_idle[i] THEN (
                    SELECT l.parked_until FROM carteiro.leased AS l
                    WHERE
                        (l.tenant, l.kind, l.parked_until)
                        >= (t_id[s_t[i]], p_kinds[s_k[i]], least(k_lost[s_k[i]], v_until))
                        AND (l.tenant, l.kind, l.parked_until) <= (t_id[s_t[i]], p_kinds[s_k[i]], c_far)
                    ORDER BY l.tenant, l.kind, l.parked_until LIMIT 1
                ) END AS first_leased,
                s_idle[i] AND k_far[s_k[i]] AND EXISTS (
                    SELECT FROM carteiro.leased AS l
                    WHERE
                        (l.tenant, l.kind, l.parked_until) > (t_id[s_t[i]], p_kinds[s_k[i]], v_now + p_longest)
                        AND (l.tenant, l.kind, l.parked_until) <= (t_id[s_t[i]], p_kinds[s_k[i]], c_far)
                ) AS is_far
            FROM generate_subscripts(s_moved, 1) AS i
            WHERE s_moved[i]
        ) AS m
        WHERE s.ctid = m.place;
    END IF;
    IF v_changed THEN
        FOR v_k IN 1..k_count LOOP
            IF v_got > 0 THEN
                k_lost[v_k] := least(k_lost[v_k], v_until);
            END IF;
            IF k_left[v_k] IS NOT NULL AND k_sends[v_k] > 0 THEN
                k_draws[v_k] := carteiro.drawn(k_draws[v_k], k_most[v_k], k_per[v_k], v_now, k_sends[v_k], p_claim, p_draws);
            END IF;
            UPDATE carteiro.ring_clock AS c
            SET n = c.n + 1, lost_from = k_lost[v_k], draws = k_draws[v_k],
                seen_at = CASE WHEN v_got > 0 OR v_now < c.seen_at - p_jitter THEN v_now ELSE c.seen_at END,
                v = CASE WHEN v_got > 0 THEN greatest(c.v, v_v) ELSE c.v END,
                turn = CASE WHEN v_got > 0 THEN v_turn ELSE c.turn END,
                least_vt = coalesce((
                    SELECT s.vt FROM carteiro.seats AS s
                    WHERE s.kind = p_kinds[v_k] AND s.wake_at IS NULL AND s.vt >= k_least[v_k]
                    ORDER BY s.vt, s.last_turn, s.tenant LIMIT 1
                ), k_least[v_k])
            WHERE c.ctid = k_tid[v_k];
        END LOOP;
    END IF;

    -- When to come again.
    o_now := v_now;
    o_idle_ms := NULL;
    FOR v_k IN 1..k_count LOOP
        IF EXISTS (
            SELECT FROM carteiro.seats AS s
            WHERE s.kind = p_kinds[v_k] AND s.wake_at IS NULL AND s.vt >= k_least[v_k]
            ORDER BY s.vt LIMIT 1
        ) THEN
            o_idle_ms := least(o_idle_ms, CASE
                WHEN k_left[v_k] <= 0 THEN carteiro.next_send_at(k_draws[v_k], k_most[v_k], k_per[v_k], v_now) - v_now
                ELSE 0
            END);
        END IF;
        o_idle_ms := least(o_idle_ms, (
            SELECT s.wake_at - v_now FROM carteiro.seats AS s
            WHERE s.kind = p_kinds[v_k] AND s.wake_at >= v_now AND s.wake_at < c_far
            ORDER BY s.wake_at LIMIT 1
        ));
    END LOOP;
    IF v_got = 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT v_now, o_idle_ms, j.no, j.id, p_kinds[s_k[j.seat]], t_id[s_t[j.seat]], j.claims + 1, t_preset[s_t[j.seat]]
    FROM unnest(j_no, j_id, j_claims, j_seat) AS j (no, id, claims, seat)
    WHERE cardinality(j_leased) = v_got OR j.no = ANY (j_leased);
    IF NOT FOUND THEN
        RETURN NEXT;
    END IF;
END
$$;

-- The fields and content of claimed messages; unknown ones are left out.
CREATE OR REPLACE FUNCTION carteiro.claimed(p_no bigint[]) RETURNS TABLE (
    o_no bigint, o_tenant text, o_declares boolean, o_ttl_ms bigint, o_state text, o_due_at bigint, o_expires_at bigint,
    o_attempts integer, o_charged integer, o_in_doubt integer, o_round integer, o_revision integer, o_holder text,
    o_held_until bigint, o_cancel_requested_at bigint, o_evidence text, o_provider text, o_provider_id text,
    o_failure json, o_duration_ms bigint, o_finished_at bigint, o_version integer, o_request_id text, o_delivery text,
    o_recipient_id text, o_preset text, o_content text
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT m.no, m.tenant, m.declares, m.ttl_ms, m.state, m.due_at, m.expires_at, m.attempts, m.charged, m.in_doubt,
        m.round, m.revision, m.holder, m.held_until, m.cancel_requested_at, m.evidence, m.provider,
        m.provider_message_id, m.failure, m.duration_ms, m.finished_at, m.version, m.request_id, m.delivery,
        m.recipient_id,
        CASE WHEN m.template_type IS NOT NULL THEN (
            SELECT CASE WHEN t.deleted_at IS NULL THEN t.retry_preset END FROM carteiro.templates AS t
            WHERE t.tenant = m.tenant AND t.type = m.template_type
            ORDER BY t.version DESC LIMIT 1
        ) END,
        c.content
    FROM unnest(p_no) AS j (no)
    JOIN carteiro.ledger AS m ON m.no = j.no
    LEFT JOIN carteiro.contents AS c ON c.message_no = j.no;
END
$$;

-- Gives claimed jobs back as if they had never been claimed; a declared attempt is not given back. Tokens that were drawn
-- for nothing go back, too. `has_work`: some may be claimed now.
CREATE OR REPLACE FUNCTION carteiro.release(p_ids text[], p_claims text[], p_wait_ms bigint, p_now bigint, OUT has_work boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_no bigint[]; v_id text[]; v_kind text[]; v_tenant text[]; v_rank bigint[]; v_claims integer[];
    v_given record;
BEGIN
    PERFORM carteiro.lock_ring(); -- tokens are claim's
    WITH given AS (
        DELETE FROM carteiro.leased AS l
        USING unnest(p_ids, p_claims) AS a (id, claim), carteiro.messages AS m
        WHERE
            m.id = a.id AND l.message_no = m.no AND l.claim_id = a.claim
            AND NOT EXISTS (
                SELECT FROM carteiro.entries AS e
                WHERE e.message_no = m.no AND e.state = 'SENT_ATTEMPT' AND e.holder = a.claim
            )
        RETURNING l.message_no, l.id, l.kind, l.tenant, l.rank, l.claims
    )
    SELECT array_agg(message_no), array_agg(id), array_agg(kind), array_agg(tenant), array_agg(rank),
        array_agg(greatest(0, claims - 1))
    INTO v_no, v_id, v_kind, v_tenant, v_rank, v_claims
    FROM given;
    has_work := v_no IS NOT NULL;
    IF NOT has_work THEN
        RETURN;
    END IF;
    IF p_wait_ms > 0 THEN
        INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until, claims)
        SELECT g.no, g.id, g.kind, g.tenant, g.rank, p_now + p_wait_ms, g.claims
        FROM unnest(v_no, v_id, v_kind, v_tenant, v_rank, v_claims) AS g (no, id, kind, tenant, rank, claims)
        ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no, claims)
        SELECT g.tenant, g.kind, g.rank, g.id, g.no, g.claims
        FROM unnest(v_no, v_id, v_kind, v_tenant, v_rank, v_claims) AS g (no, id, kind, tenant, rank, claims)
        ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO carteiro.notes (kind, tenant, wake_at, rank)
    SELECT g.kind, g.tenant, p_now + p_wait_ms, CASE WHEN p_wait_ms <= 0 THEN min(g.rank) END
    FROM unnest(v_kind, v_tenant, v_rank) AS g (kind, tenant, rank)
    GROUP BY g.kind, g.tenant;
    INSERT INTO carteiro.notes (kind, tenant, wake_at)
    SELECT '', t.id, p_now FROM carteiro.tenants AS t WHERE t.id = ANY (v_tenant) AND t.cap IS NOT NULL;
    FOR v_given IN
        SELECT g.kind, a.claim, count(*) AS jobs
        FROM unnest(v_id, v_kind) AS g (id, kind) JOIN unnest(p_ids, p_claims) AS a (id, claim) ON a.id = g.id
        GROUP BY g.kind, a.claim
    LOOP
        UPDATE carteiro.ring_clock AS c
        SET n = c.n + 1, draws = carteiro.undrawn(c.draws, v_given.claim, v_given.jobs)
        WHERE c.kind = v_given.kind AND c.limit_count IS NOT NULL;
    END LOOP;
    UPDATE carteiro.tenants AS t
    SET next_token_us = t.next_token_us - g.jobs * greatest(1, round(1000000 / t.rate_per_second)::bigint)
    FROM (SELECT tenant, count(*) AS jobs FROM unnest(v_tenant) AS k (tenant) GROUP BY tenant) AS g
    WHERE t.id = g.tenant AND t.rate_per_second IS NOT NULL;
END
$$;

-- Releases all jobs of claims. Finds them under the ring's lock: a claim that waits for the lock commits first.
CREATE OR REPLACE FUNCTION carteiro.undo_claims(p_claims text[], p_now bigint, OUT has_work boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_ids text[]; v_claims text[];
BEGIN
    PERFORM carteiro.lock_ring();
    SELECT array_agg(l.id), array_agg(l.claim_id) INTO v_ids, v_claims
    FROM carteiro.ring_clock AS c JOIN carteiro.leased AS l ON l.kind = c.kind
    WHERE l.claim_id = ANY (p_claims);
    has_work := v_ids IS NOT NULL AND carteiro.release(v_ids, v_claims, 0, p_now);
END
$$;

-- Extends claims and the holds of their declared attempts, never shortens one; returns the ids with a valid claim.
CREATE OR REPLACE FUNCTION carteiro.extend(p_ids text[], p_claims text[], p_until bigint) RETURNS TABLE (o_id text, o_claim text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM 1 FROM carteiro.entries AS e
    WHERE e.message_no = ANY (ARRAY(SELECT m.no FROM carteiro.messages AS m WHERE m.id = ANY (p_ids)))
    ORDER BY e.message_no
    FOR NO KEY UPDATE;
    RETURN QUERY
    WITH pushed AS (
        UPDATE carteiro.leased AS l SET parked_until = greatest(l.parked_until, p_until)
        FROM unnest(p_ids, p_claims) AS a (id, claim), carteiro.messages AS m
        WHERE m.id = a.id AND l.message_no = m.no AND l.claim_id = a.claim
        RETURNING l.message_no, l.id, l.claim_id
    ),
    held AS (
        UPDATE carteiro.entries AS e SET held_until = greatest(e.held_until, p_until), version = e.version + 1
        FROM pushed AS p
        WHERE e.message_no = p.message_no AND e.held_until IS NOT NULL AND e.holder = p.claim_id
    )
    SELECT p.id, p.claim_id FROM pushed AS p;
END
$$;
