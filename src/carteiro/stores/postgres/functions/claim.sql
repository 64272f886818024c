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

-- The clocks of kinds, `i` is the place of the kind.
CREATE OR REPLACE FUNCTION carteiro.clocks(p_kinds text[])
RETURNS TABLE (
    i bigint, place tid, kind text, v bigint, turn bigint, seen_at bigint, limit_count bigint, limit_per_ms bigint, draws text,
    least_vt bigint, lost_from bigint
)
LANGUAGE sql STABLE
AS $$
    SELECT k.i, c.*
    FROM unnest(p_kinds) WITH ORDINALITY AS k (kind, i)
    CROSS JOIN LATERAL (
        SELECT o.ctid, o.kind, o.v, o.turn, o.seen_at, o.limit_count, o.limit_per_ms, o.draws, o.least_vt, o.lost_from
        FROM carteiro.ring_clock AS o
        WHERE o.kind = k.kind
        ORDER BY o.n DESC LIMIT 1
    ) AS c
$$;

-- The clock was set back: alarms, ends of leases and draws in the future mean nothing.
CREATE OR REPLACE FUNCTION carteiro.step_back(p_kinds text[], p_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE carteiro.seats AS s
    SET n = s.n + 1, wake_at = CASE WHEN s.wake_at IS NOT NULL THEN p_now END, due_from = 0
    WHERE s.kind = ANY (p_kinds);
    UPDATE carteiro.ring_clock AS c
    SET n = c.n + 1, seen_at = p_now, lost_from = 0, draws = carteiro.stepped_back(c.draws, p_now)
    WHERE c.kind = ANY (p_kinds);
END
$$;

-- Begins a claim: locks the ring, reads the notes, and lets the seats whose alarm has rung into
-- the ring, no further back than V; a paused or disabled tenant sleeps on. Of each kind: `left_of`, the jobs that its send limit
-- allows (NULL: it has none); `least_of`, the least virtual time; `lost_of`, no lease ends before it; `has_far`, a lease
-- ends later than any can.
CREATE OR REPLACE FUNCTION carteiro.open_ring(
    p_kinds text[], p_longest bigint, p_jitter bigint, p_now bigint,
    OUT now bigint, OUT v bigint, OUT turn bigint, OUT left_of bigint[], OUT least_of bigint[], OUT lost_of bigint[],
    OUT has_far boolean[], OUT has_changed boolean
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    v_seen pg_snapshot;
    v_seen_at bigint;
    v_lost bigint[];
    v_woken bigint[];
    v_count integer;
BEGIN
    SELECT r.seen INTO v_seen FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1 FOR UPDATE; -- as `lock_ring`
    now := coalesce(p_now, carteiro.now_ms());
    IF pg_snapshot_xmax(v_seen) > pg_snapshot_xmax(pg_current_snapshot()) THEN -- restored while we were connected
        PERFORM carteiro.rebuild_ring(now);
    END IF;
    PERFORM carteiro.read_notes(p_jitter);
    has_changed := false;
    LOOP
        SELECT max(c.v), max(c.turn), max(c.seen_at), count(*),
            array_agg(CASE
                WHEN c.limit_count IS NOT NULL THEN carteiro.sends_left(c.draws, c.limit_count, c.limit_per_ms, now)
            END ORDER BY c.i),
            array_agg(c.least_vt ORDER BY c.i), array_agg(c.lost_from ORDER BY c.i),
            array_agg(coalesce((
                SELECT l.parked_until FROM carteiro.leased AS l -- what is gone is not walked over again
                WHERE l.kind = c.kind AND l.parked_until >= c.lost_from
                ORDER BY l.parked_until LIMIT 1
            ), c_far) ORDER BY c.i),
            array_agg(EXISTS (
                SELECT FROM carteiro.leased AS l WHERE l.kind = c.kind AND l.parked_until > now + p_longest
                ORDER BY l.parked_until LIMIT 1 -- so that this index is taken, whatever the planner thinks
            ) ORDER BY c.i)
        INTO v, turn, v_seen_at, v_count, left_of, least_of, v_lost, lost_of, has_far
        FROM carteiro.clocks(p_kinds) AS c;
        IF v_count < cardinality(p_kinds) THEN
            INSERT INTO carteiro.ring_clock (kind)
            SELECT k.kind FROM unnest(p_kinds) AS k (kind)
            WHERE NOT EXISTS (SELECT FROM carteiro.ring_clock AS c WHERE c.kind = k.kind);
        ELSIF now < v_seen_at - p_jitter THEN
            has_changed := true;
            PERFORM carteiro.step_back(p_kinds, now);
        ELSE
            EXIT;
        END IF;
    END LOOP;
    has_changed := has_changed OR v_lost <> lost_of;
    WITH due AS MATERIALIZED (
        SELECT s.ctid AS place, c.v, c.i
        FROM carteiro.clocks(p_kinds) AS c
        CROSS JOIN LATERAL (
            SELECT o.ctid FROM carteiro.seats AS o
            WHERE o.kind = c.kind AND o.wake_at >= c.seen_at - p_jitter AND o.wake_at <= now
            OFFSET 0
        ) AS s
    ),
    woken AS (
        UPDATE carteiro.seats AS s
        SET n = s.n + 1,
            vt = CASE WHEN t.paused OR t.disabled THEN s.vt ELSE greatest(s.vt, due.v) END,
            since_turn = turn,
            wake_at = CASE WHEN t.paused OR t.disabled THEN c_far END
        FROM due, carteiro.tenants AS t
        WHERE s.ctid = due.place AND t.id = s.tenant
        RETURNING due.i, CASE WHEN s.wake_at IS NULL THEN s.vt ELSE c_far END AS vt
    )
    SELECT array_agg(w.vt) INTO v_woken
    FROM (
        SELECT (SELECT min(w.vt) FROM woken AS w WHERE w.i = k.i) AS vt
        FROM generate_subscripts(p_kinds, 1) AS k (i)
        WHERE EXISTS (SELECT FROM woken)
        ORDER BY k.i
    ) AS w;
    IF v_woken IS NOT NULL THEN
        has_changed := true;
        least_of := ARRAY(SELECT least(least_of[k.i], v_woken[k.i]) FROM generate_subscripts(p_kinds, 1) AS k (i) ORDER BY k.i);
    END IF;
END
$$;

-- A tenant's jobs in flight, of any kind, and the first end of a lease.
CREATE OR REPLACE FUNCTION carteiro.in_flight(
    p_tenant text, p_longest bigint, p_now bigint, OUT jobs bigint, OUT first_end bigint
)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    SELECT coalesce(sum(f.jobs), 0), min(f.first_end) INTO jobs, first_end
    FROM (SELECT c.kind, max(c.lost_from) AS lost_from FROM carteiro.ring_clock AS c GROUP BY c.kind) AS k
    CROSS JOIN LATERAL (
        SELECT cardinality(l.numbers) AS jobs, l.parked_until AS first_end FROM carteiro.leased AS l
        WHERE
            (l.tenant, l.kind, l.parked_until) > (p_tenant, k.kind, p_now)
            AND (l.tenant, l.kind, l.parked_until) <= (p_tenant, k.kind, p_now + p_longest)
        UNION ALL
        SELECT 1, h.until
        FROM carteiro.leased AS l CROSS JOIN LATERAL carteiro.ends_of(l.claim_id, l.numbers, l.parked_until) AS h
        WHERE
            (l.tenant, l.kind, l.parked_until) >= (p_tenant, k.kind, k.lost_from)
            AND (l.tenant, l.kind, l.parked_until) <= (p_tenant, k.kind, p_now)
            AND h.until > p_now AND h.until <= p_now + p_longest
    ) AS f;
END
$$;

-- The jobs that a tenant's rate allows now; NULL: it has none.
CREATE OR REPLACE FUNCTION carteiro.tokens(p_rate double precision, p_next_us bigint, p_now bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    v_interval bigint := greatest(1, round(1000000 / p_rate)::bigint);
BEGIN
    RETURN CASE WHEN p_rate IS NOT NULL THEN
        carteiro.pace_tokens(p_next_us, p_now * 1000, v_interval, greatest(0, 1000000 - v_interval))
    END;
END
$$;

-- Sets the alarms of seats whose tenant may take no more: the end of its first lease, or its next token.
CREATE OR REPLACE FUNCTION carteiro.hold_back(p_kinds text[], p_tenants text[], p_longest bigint, p_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    v_seat record;
    v_flight record;
BEGIN
    FOR v_seat IN
        SELECT h.kind, t.*, greatest(0, 1000000 - greatest(1, round(1000000 / t.rate_per_second)::bigint)) AS burst_us
        FROM unnest(p_kinds, p_tenants) AS h (kind, tenant) JOIN carteiro.tenants AS t ON t.id = h.tenant
        WHERE NOT (t.paused OR t.disabled) -- those sleep on
    LOOP
        SELECT * INTO v_flight FROM carteiro.in_flight(v_seat.id, p_longest, p_now);
        UPDATE carteiro.seats AS s
        SET n = s.n + 1, wake_at = greatest(p_now, CASE
            WHEN v_flight.jobs >= v_seat.cap THEN coalesce(v_flight.first_end, c_far)
            ELSE (v_seat.next_token_us - v_seat.burst_us + 999) / 1000
        END)
        WHERE s.tenant = v_seat.id AND s.kind = v_seat.kind;
    END LOOP;
END
$$;

-- When the first of a seat's jobs that are not ready may be: the time of a delayed one, the end of a lease.
CREATE OR REPLACE FUNCTION carteiro.next_job(
    p_is_idle boolean, p_kind text, p_tenant text, p_due_from bigint, p_lost_from bigint, p_longest bigint, p_now bigint
) RETURNS TABLE (parked_until bigint, lease_end bigint)
LANGUAGE sql STABLE
AS $$
    SELECT
        CASE WHEN p_is_idle THEN (
            SELECT d.parked_until FROM carteiro.delayed AS d
            WHERE d.tenant = p_tenant AND d.kind = p_kind AND d.parked_until >= p_due_from
            ORDER BY d.parked_until LIMIT 1
        ) END,
        CASE WHEN p_is_idle THEN (
            SELECT least(min(l.parked_until), CASE WHEN max(l.parked_until) > p_now + p_longest THEN p_now END)
            FROM carteiro.leased AS l
            WHERE
                (l.tenant, l.kind, l.parked_until) >= (p_tenant, p_kind, p_lost_from)
                AND (l.tenant, l.kind, l.parked_until) <= (p_tenant, p_kind, 4611686018427387904)
        ) END
$$;

-- Draws the jobs of seats from the rates of their tenants, and from the send limits of their kinds: returns what those have left.
CREATE OR REPLACE FUNCTION carteiro.draw(
    p_kinds text[], p_left bigint[], p_seat_kinds text[], p_tenants text[], p_jobs bigint[], p_now bigint
) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE carteiro.tenants AS t
    SET next_token_us = d.jobs * d.interval_us
        + carteiro.pace_due(t.next_token_us, p_now * 1000, d.interval_us, greatest(0, 1000000 - d.interval_us))
    FROM (
        SELECT o.id, greatest(1, round(1000000 / o.rate_per_second)::bigint) AS interval_us, sum(j.jobs) AS jobs
        FROM unnest(p_tenants, p_jobs) AS j (tenant, jobs) JOIN carteiro.tenants AS o ON o.id = j.tenant
        WHERE o.rate_per_second IS NOT NULL AND j.jobs > 0
        GROUP BY o.id
    ) AS d
    WHERE t.id = d.id;
    RETURN ARRAY(
        SELECT k.room - coalesce((
            SELECT sum(j.jobs) FROM unnest(p_seat_kinds, p_jobs) AS j (kind, jobs) WHERE j.kind = k.kind
        ), 0)
        FROM unnest(p_kinds, p_left) WITH ORDINALITY AS k (kind, room, i)
        ORDER BY k.i
    );
END
$$;

-- Stores the clocks after a claim. p_left and p_left_now: what the send limits allowed before and after it; p_until: the end of its
-- leases, NULL: it has none.
CREATE OR REPLACE FUNCTION carteiro.save_clocks(
    p_kinds text[], p_v bigint, p_turn bigint, p_left bigint[], p_left_now bigint[], p_least bigint[], p_lost bigint[],
    p_claim text, p_draws bigint, p_until bigint, p_now bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE carteiro.ring_clock AS c
    SET n = c.n + 1, lost_from = least(p_lost[k.i], p_until),
        draws = CASE
            WHEN p_left[k.i] > p_left_now[k.i] THEN carteiro.drawn(
                c.draws, c.limit_count, c.limit_per_ms, p_now, p_left[k.i] - p_left_now[k.i], p_claim, p_draws
            )
            ELSE c.draws
        END,
        seen_at = CASE WHEN p_until IS NOT NULL THEN p_now ELSE c.seen_at END,
        v = CASE WHEN p_until IS NOT NULL THEN greatest(c.v, p_v) ELSE c.v END,
        turn = CASE WHEN p_until IS NOT NULL THEN p_turn ELSE c.turn END,
        least_vt = coalesce((
            SELECT s.vt FROM carteiro.seats AS s
            WHERE s.kind = k.kind AND s.wake_at IS NULL AND s.vt >= p_least[k.i]
            ORDER BY s.vt, s.last_turn, s.tenant LIMIT 1
        ), p_least[k.i])
    FROM carteiro.clocks(p_kinds) AS k
    WHERE c.ctid = k.place;
END
$$;

-- When a claim of these kinds may find something; NULL: nothing is known to come.
CREATE OR REPLACE FUNCTION carteiro.idle_ms(p_kinds text[], p_now bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT min(least(
            CASE WHEN EXISTS (
                SELECT FROM carteiro.seats AS s
                WHERE s.kind = k.kind AND s.wake_at IS NULL AND s.vt >= k.least_vt
                ORDER BY s.vt LIMIT 1
            ) THEN
                CASE
                    WHEN k.limit_count IS NULL OR carteiro.sends_left(k.draws, k.limit_count, k.limit_per_ms, p_now) > 0 THEN 0
                    ELSE carteiro.next_send_at(k.draws, k.limit_count, k.limit_per_ms, p_now) - p_now
                END
            END,
            (
                SELECT s.wake_at - p_now FROM carteiro.seats AS s
                WHERE s.kind = k.kind AND s.wake_at >= p_now AND s.wake_at < 4611686018427387904
                ORDER BY s.wake_at LIMIT 1
            )
        ))
        FROM carteiro.clocks(p_kinds) AS k
    );
END
$$;

-- The first seats in the rings of kinds, in the order of their turns, with what their tenants may take (`allowance`, NULL: no
-- limit). `is_shared`: another seat may draw from the same limit; `is_due`: jobs can be made ready, `is_fresh`: and none were.
-- `pace` and `spent` are the sums, up to this seat, of jobs by virtual time and of jobs served.
CREATE OR REPLACE FUNCTION carteiro.next_seats(
    p_kinds text[], p_left bigint[], p_least bigint[], p_lost bigint[], p_far boolean[], p_size bigint, p_is_full boolean,
    p_heeds_due boolean, p_readied text[], p_longest bigint, p_now bigint
) RETURNS TABLE (
    i bigint, place tid, kind text, tenant text, vt bigint, stride bigint, lowest bigint, due_from bigint, lost_from bigint,
    preset text, is_limited boolean, allowance bigint, is_shared boolean, is_delayed boolean, is_lost boolean,
    is_fresh boolean, pace double precision, spent double precision
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT row_number() OVER w, s.place, s.kind, s.tenant, s.vt, s.stride, s.lowest, s.due_from, s.lost, s.retry_preset,
        s.is_limited,
        CASE
            WHEN s.is_held THEN 0
            WHEN s.is_limited THEN least( -- a cap may be lowered below the jobs in flight
                CASE WHEN s.cap IS NOT NULL THEN
                    greatest(0, s.cap - (SELECT f.jobs FROM carteiro.in_flight(s.tenant, p_longest, p_now) AS f))
                END,
                carteiro.tokens(s.rate_per_second, s.next_token_us, p_now)
            )
        END,
        s.is_limited AND cardinality(p_kinds) > 1 AND (s.room IS NOT NULL OR EXISTS (
            SELECT FROM carteiro.seats AS o
            WHERE o.tenant = s.tenant AND o.kind = ANY (p_kinds) AND o.kind <> s.kind AND o.wake_at IS NULL
        )),
        d.is_delayed, d.is_lost, NOT (s.kind || ' ' || s.tenant) = ANY (p_readied),
        sum(1::double precision / s.stride) OVER w, sum(s.vt::double precision / s.stride) OVER w
    FROM (
        SELECT o.*, k.lost, k.has_far, k.room,
            o.is_held OR o.cap IS NOT NULL OR o.rate_per_second IS NOT NULL OR k.room IS NOT NULL AS is_limited
        FROM unnest(p_kinds, p_left, p_least, p_lost, p_far) AS k (kind, room, least, lost, has_far)
        CROSS JOIN LATERAL (
            SELECT e.ctid AS place, e.kind, e.tenant, e.vt, e.last_turn, e.lowest, e.due_from, t.stride, t.cap,
                t.rate_per_second, t.next_token_us, t.retry_preset, t.paused OR t.disabled AS is_held
            FROM carteiro.seats AS e JOIN carteiro.tenants AS t ON t.id = e.tenant
            WHERE
                e.kind = k.kind AND e.wake_at IS NULL AND e.vt >= k.least
                AND (k.room IS NULL OR (k.room > 0 AND NOT p_is_full))
                AND NOT (p_is_full AND (t.paused OR t.disabled OR t.cap IS NOT NULL OR t.rate_per_second IS NOT NULL))
            ORDER BY e.vt, e.last_turn, e.tenant
            LIMIT p_size
        ) AS o
        ORDER BY o.vt, o.last_turn, o.tenant, o.kind
        LIMIT p_size
    ) AS s
    CROSS JOIN LATERAL (
        SELECT
            p_heeds_due AND EXISTS (
                SELECT FROM carteiro.delayed AS d
                WHERE d.tenant = s.tenant AND d.kind = s.kind AND d.parked_until >= s.due_from AND d.parked_until <= p_now
            ) AS is_delayed,
            p_heeds_due AND ((s.lost <= p_now AND EXISTS (
                SELECT FROM carteiro.leased AS l
                WHERE
                    (l.tenant, l.kind, l.parked_until) >= (s.tenant, s.kind, s.lost)
                    AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, p_now)
            )) OR (s.has_far AND EXISTS (
                SELECT FROM carteiro.leased AS l
                WHERE
                    (l.tenant, l.kind, l.parked_until) > (s.tenant, s.kind, p_now + p_longest)
                    AND (l.tenant, l.kind, l.parked_until) <= (s.tenant, s.kind, 4611686018427387904)
            ))) AS is_lost
    ) AS d
    WINDOW w AS (ORDER BY s.vt, s.last_turn, s.tenant, s.kind ROWS UNBOUNDED PRECEDING);
END
$$;

-- The general case of `claim`, whose settings hold here: any number of seats, with limits, retries that are due, expired leases.
-- The turns of a claim are known without walking them, as long as nothing new is made ready: the turn k of a seat starts at
-- vt + k * batch * stride. At the same start a seat without a turn comes first; of two with turns the one whose last
-- turn started earlier, which has the greater stride; at equal strides the one with fewer turns, which had none when
-- the other had its last. So all jobs of the next seats are sorted at once, as far as the ring will come:
-- the virtual time that it reaches is the least of what its first 1, 2, ... seats alone reach. The order is that of the walk in
-- policy/turns.py up to a *stop*: the first place of which not all is known. Then the next round begins.
CREATE OR REPLACE FUNCTION carteiro.claim_of_many(
    p_kinds text[], p_limit integer, p_ahead integer, p_claim text, p_lease_ms bigint, p_batch integer, p_in_turns boolean,
    p_readied integer, p_suspect integer, p_draws bigint, p_longest bigint, p_jitter bigint, p_now bigint,
    OUT o_now bigint, OUT o_idle_ms bigint, OUT o_numbers bigint[], OUT o_claims integer[], OUT o_tenants text[],
    OUT o_presets jsonb
)
LANGUAGE plpgsql
AS $$
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    v_ring record;
    v_round record;
    v_tuned json;
    v_batch integer := p_batch;
    v_in_turns boolean := p_in_turns;
    v_room integer := greatest(0, p_limit) + p_ahead; -- jobs that it may still take
    v_slots integer := greatest(0, p_limit);          -- of these, also of tenants and kinds with a limit
    v_size bigint;
    v_until bigint;
    v_readied text[] := '{}';
    v_heeds_due boolean := true;
    v_left bigint[];
BEGIN
    o_numbers := '{}';
    o_claims := '{}';
    o_tenants := '{}';
    SELECT * INTO v_ring FROM carteiro.open_ring(p_kinds, p_longest, p_jitter, p_now);
    SELECT o.setting::json INTO v_tuned FROM carteiro.overrides AS o WHERE o.name = 'fairness';
    IF v_tuned IS NOT NULL THEN
        v_batch := (v_tuned ->> 'max_jobs_per_tenant_batch')::integer;
        v_in_turns := (v_tuned ->> 'enable_round_robin')::boolean;
    END IF;
    IF NOT v_in_turns THEN
        v_batch := 1;
    END IF;
    o_now := v_ring.now;
    v_left := v_ring.left_of;
    v_until := o_now + p_lease_ms;
    IF cardinality(p_kinds) = 1 AND v_ring.left_of[1] IS NOT NULL THEN
        v_slots := least(v_slots, v_ring.left_of[1]);
        v_room := v_slots;
    END IF;
    WHILE v_room > 0 LOOP
        v_size := CASE WHEN v_in_turns THEN greatest(8, (v_room + v_batch - 1) / v_batch) + 1 END;
        WITH page AS MATERIALIZED (
            SELECT s.*, (s.is_delayed OR s.is_lost) AS is_due,
                (
                    ((s.is_delayed OR s.is_lost) AND s.is_fresh) OR s.i = v_size
                    OR (v_in_turns AND s.is_shared AND s.i > min(s.i) FILTER (WHERE s.is_shared) OVER ())
                ) IS TRUE AS is_stop,
                1 + least(v_room, s.allowance, CASE
                    WHEN NOT v_in_turns THEN v_room / count(*) OVER () + 2
                    WHEN s.is_shared THEN least(v_batch, v_ring.left_of[array_position(p_kinds, s.kind)])
                    ELSE v_batch * (1 + floor(greatest(0, min((v_room + s.spent) / s.pace) OVER () - s.vt) / (s.stride * v_batch)))
                END)::bigint AS need
            FROM carteiro.next_seats(
                p_kinds, v_ring.left_of, v_ring.least_of, v_ring.lost_of, v_ring.has_far, v_size, v_slots <= 0,
                v_heeds_due, v_readied, p_longest, o_now
            ) AS s
        ),
        heads AS (
            SELECT g.i, g.place, g.kind, g.tenant, g.preset, g.vt, g.stride, g.due_from, g.lost_from, g.is_limited, g.need,
                g.is_due, g.is_fresh, g.is_stop, g.is_shared,
                h.message_no, h.id, h.rank, h.claims, h.job, h.found, coalesce(h.no, 1) AS no,
                coalesce(coalesce(h.no, 1) > g.allowance, false) AS is_over
            FROM page AS g
            LEFT JOIN LATERAL (
                SELECT q.*, row_number() OVER () AS no, count(*) OVER () AS found
                FROM (
                    SELECT * FROM (
                        SELECT d.message_no, d.id, d.rank, d.claims, d.ctid AS job FROM carteiro.ready AS d
                        WHERE d.tenant = g.tenant AND d.kind = g.kind AND d.rank >= g.lowest
                        ORDER BY d.rank, d.id LIMIT CASE WHEN g.is_stop THEN 1 ELSE g.need END
                    ) AS ready
                    UNION ALL SELECT NULL, NULL, c_far, NULL, NULL WHERE g.is_due -- more can be made ready
                    LIMIT g.need
                ) AS q
            ) AS h ON true
        ),
        sorted AS MATERIALIZED (
            SELECT t.*, row_number() OVER w AS pos, count(*) FILTER (WHERE t.is_job) OVER w - t.is_job::integer AS before,
                count(*) FILTER (WHERE t.is_job AND (t.no - 1) % v_batch = 0) OVER w AS turn
            FROM (
                SELECT x.*, NOT (x.is_stop OR x.is_over OR x.no = x.need OR x.message_no IS NULL) AS is_job,
                    NOT x.is_over AND (x.is_stop OR x.no = x.need OR (x.message_no IS NULL AND x.is_due)) AS is_end,
                    x.vt + x.stride * CASE WHEN x.is_over THEN x.no - 1 ELSE (x.no - 1) / v_batch * v_batch END AS starts_at,
                    CASE WHEN x.is_over THEN (x.no - 2 + v_batch) / v_batch ELSE (x.no - 1) / v_batch END AS turns
                FROM heads AS x
            ) AS t
            WINDOW w AS (
                ORDER BY CASE WHEN v_in_turns THEN t.starts_at WHEN t.is_due AND t.is_fresh THEN -2 ELSE coalesce(t.rank, -1) END,
                    CASE WHEN v_in_turns AND t.turns > 0 THEN -t.stride END NULLS FIRST,
                    CASE WHEN v_in_turns THEN t.turns END, CASE WHEN v_in_turns THEN t.i END,
                    CASE WHEN NOT v_in_turns THEN t.id END, t.no
                ROWS UNBOUNDED PRECEDING
            )
        ),
        stop AS MATERIALIZED (
            SELECT s.pos, s.i, s.vt, s.before, s.is_fresh, s.is_end AND s.is_due AND (s.is_fresh OR s.message_no IS NULL) AS is_due,
                s.is_job AND s.claims >= p_suspect AS is_suspect,
                s.is_job AND s.claims >= p_suspect AND s.before = 0 AND o_numbers = '{}' AS is_alone
            FROM sorted AS s
            WHERE s.is_end OR (s.is_job AND s.claims >= p_suspect) OR (s.is_limited AND s.before >= v_slots)
                OR (NOT v_in_turns AND s.is_shared AND s.is_job AND s.before > 0) -- by age any seat may be the first
            ORDER BY s.pos LIMIT 1
        ),
        visited AS MATERIALIZED (
            SELECT s.* FROM sorted AS s
            WHERE s.before < v_room
                AND s.pos < coalesce((SELECT o.pos + o.is_alone::integer FROM stop AS o), c_far)
        ),
        gone AS (DELETE FROM carteiro.ready WHERE ctid = ANY (ARRAY(SELECT x.job FROM visited AS x WHERE x.is_job))),
        leased AS (
            INSERT INTO carteiro.leased AS l (claim_id, tenant, kind, parked_until, claims, numbers)
            SELECT p_claim, x.tenant, x.kind, v_until, x.claims + 1, array_agg(x.message_no) FROM visited AS x WHERE x.is_job
            GROUP BY x.tenant, x.kind, x.claims
            ON CONFLICT (claim_id, tenant, kind, parked_until, claims) DO UPDATE SET numbers = l.numbers || excluded.numbers
        ),
        after AS MATERIALIZED (
            SELECT x.place, x.kind, x.tenant, x.preset, x.stride, x.due_from, x.lost_from,
                count(*) FILTER (WHERE x.is_job) AS jobs, max(x.rank) FILTER (WHERE x.is_job) AS rank,
                max(x.turn) FILTER (WHERE x.is_job) AS turn, bool_or(x.is_over) AS is_over,
                bool_or(x.is_job AND x.claims >= p_suspect) AS is_suspect,
                NOT bool_or(x.is_over) AND (
                    bool_or(x.message_no IS NULL) OR (max(x.found) < max(x.need) AND max(x.found) = count(*))
                ) AS is_idle
            FROM visited AS x
            GROUP BY x.place, x.kind, x.tenant, x.preset, x.stride, x.due_from, x.lost_from
        ),
        moved AS (
            UPDATE carteiro.seats AS s
            SET n = s.n + 1, processed = s.processed + a.jobs, lowest = coalesce(a.rank, s.lowest),
                vt = s.vt + a.cost, last_turn = CASE WHEN a.cost > 0 THEN v_ring.turn + a.turn ELSE s.last_turn END,
                consecutive = CASE WHEN a.cost > 0 THEN (a.jobs - 1) % v_batch + 1 ELSE s.consecutive END,
                last_processed_at = CASE WHEN a.jobs > 0 THEN o_now ELSE s.last_processed_at END,
                due_from = CASE WHEN a.is_idle THEN least(coalesce(w.parked_until, o_now), o_now) ELSE s.due_from END,
                wake_at = CASE
                    WHEN a.is_idle THEN greatest(
                        o_now, least(w.parked_until, w.lease_end, CASE WHEN a.jobs > 0 THEN v_until ELSE c_far END)
                    )
                    WHEN a.is_over THEN c_far -- see `hold_back`
                END
            FROM (
                SELECT b.*, CASE
                    WHEN NOT v_in_turns THEN 0
                    WHEN b.is_suspect THEN 5 * v_batch * b.stride -- SUSPECT_TURNS, as in policy/fairness.py
                    ELSE b.jobs * b.stride
                END AS cost
                FROM after AS b
            ) AS a
            CROSS JOIN LATERAL carteiro.next_job(a.is_idle, a.kind, a.tenant, a.due_from, a.lost_from, p_longest, o_now) AS w
            WHERE s.ctid = a.place
        )
        SELECT v.*, a.*, o.*, f.* INTO v_round
        FROM (
            SELECT count(*) AS visits, count(*) FILTER (WHERE x.is_job) AS jobs,
                array_agg(x.message_no) FILTER (WHERE x.is_job) AS numbers,
                array_agg(x.claims + 1) FILTER (WHERE x.is_job) AS claims,
                max(x.starts_at) FILTER (WHERE x.is_job) AS v, max(x.turn) FILTER (WHERE x.is_job) AS turns,
                bool_or(x.is_job AND x.is_limited) AS has_drawn
            FROM (SELECT y.message_no, y.claims, y.starts_at, y.turn, y.is_job, y.is_limited FROM visited AS y ORDER BY y.pos) AS x
        ) AS v
        CROSS JOIN (
            SELECT array_agg(x.kind) AS kinds, array_agg(x.tenant) AS tenants, array_agg(x.jobs) AS jobs_of,
                jsonb_object_agg(x.tenant, x.preset) FILTER (WHERE x.jobs > 0 AND x.preset IS NOT NULL) AS presets,
                array_agg(x.kind) FILTER (WHERE x.is_over) AS over_kinds, array_agg(x.tenant) FILTER (WHERE x.is_over) AS over
            FROM after AS x
        ) AS a
        LEFT JOIN stop AS o ON true
        LEFT JOIN LATERAL (
            SELECT array_agg(x.kind) AS due_kinds, array_agg(x.tenant) AS due_tenants, array_agg(x.due_from) AS due_from,
                array_agg(CASE WHEN x.i = o.i THEN x.lost_from END) AS lost_from,
                array_agg(x.kind || ' ' || x.tenant) FILTER (WHERE x.i = o.i OR NOT x.is_lost) AS readied
            FROM page AS x
            WHERE o.is_due AND (x.i = o.i OR (
                o.is_fresh AND x.is_fresh AND x.is_delayed AND NOT x.is_limited
                -- Only what the walk would certainly visit: none of these has a second turn before.
                AND (NOT v_in_turns OR (x.vt = o.vt AND o.before + v_batch * (x.i - o.i) < v_room))
            ))
        ) AS f ON true;
        v_ring.has_changed := v_ring.has_changed OR v_round.visits > 0;
        IF v_round.jobs > 0 THEN
            o_numbers := o_numbers || v_round.numbers;
            o_claims := o_claims || v_round.claims;
            o_tenants := o_tenants || v_round.tenants;
            o_presets := coalesce(o_presets || v_round.presets, o_presets, v_round.presets);
            v_room := v_room - v_round.jobs;
            v_slots := v_slots - v_round.jobs;
            IF v_in_turns THEN
                v_ring.v := greatest(v_ring.v, v_round.v);
                v_ring.turn := v_ring.turn + v_round.turns;
            END IF;
        END IF;
        IF v_round.has_drawn THEN
            v_ring.left_of := carteiro.draw(p_kinds, v_ring.left_of, v_round.kinds, v_round.tenants, v_round.jobs_of, o_now);
        END IF;
        IF v_round.over IS NOT NULL THEN
            PERFORM carteiro.hold_back(v_round.over_kinds, v_round.over, p_longest, o_now);
        END IF;
        EXIT WHEN v_round.pos IS NULL OR v_round.is_suspect OR v_room <= 0;
        IF v_round.is_due THEN
            v_readied := v_readied || v_round.readied;
            v_heeds_due := 0 < carteiro.ready_due( -- else another transaction is removing them
                v_round.due_kinds, v_round.due_tenants, v_round.due_from, v_round.lost_from, p_longest, o_now, p_readied
            );
        END IF;
    END LOOP;
    IF o_numbers <> '{}' THEN
        INSERT INTO carteiro.claims (id) VALUES (p_claim) ON CONFLICT DO NOTHING;
    END IF;
    IF v_ring.has_changed THEN
        PERFORM carteiro.save_clocks(
            p_kinds, v_ring.v, v_ring.turn, v_left, v_ring.left_of, v_ring.least_of, v_ring.lost_of, p_claim, p_draws,
            CASE WHEN o_numbers <> '{}' THEN v_until END, o_now
        );
    END IF;
    IF 1 = ALL (o_claims) THEN
        o_claims := NULL;
    END IF;
    o_idle_ms := carteiro.idle_ms(p_kinds, o_now);
END
$$;

-- Leases at most p_limit ready jobs of these kinds, and p_ahead more of tenants and kinds without a limit; tenants take turns by
-- virtual time (docs/explanation/fairness.md). `o_idle_ms`: when to come again, NULL: nothing is known to come. `o_messages`: the
-- messages, as `claimed` has them, if they are few; of many the ring would be locked too long.
--
-- It looks first, without a lock: a wake-up that is for another worker costs little, and whatever is committed later brings
-- one of its own. If only one seat has work, and nothing limits it, its turns are known at once. All else is `claim_of_many`.
-- The holder of the ring's lock changes its number: what was looked up is void if the number is another.
CREATE OR REPLACE FUNCTION carteiro.claim(
    p_kinds text[], p_limit integer, p_ahead integer, p_claim text, p_lease_ms bigint, p_batch integer, p_in_turns boolean,
    p_readied integer, p_suspect integer, p_draws bigint, p_longest bigint, p_jitter bigint, p_now bigint,
    OUT o_now bigint, OUT o_idle_ms bigint, OUT o_numbers bigint[], OUT o_claims integer[], OUT o_tenants text[],
    OUT o_presets jsonb, OUT o_messages text
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    c_few CONSTANT integer := 10;
    c_room CONSTANT bigint := greatest(0, p_limit) + p_ahead;
    v_sync text;
    v_ring record;
    v_notes record;
    v_clocks record;
    v_seat record;
    v_jobs record;
    v_next record;
    v_kind text;
    v_i integer;
    v_taken bigint;
    v_turns bigint;
    v_until bigint;
    v_wake_at bigint;
BEGIN
    FOR v_try IN 1..2 LOOP
        o_now := coalesce(p_now, carteiro.now_ms());
        SELECT r.n, r.folded, r.seen INTO v_ring FROM carteiro.ring AS r ORDER BY r.n DESC LIMIT 1;
        SELECT pg_current_snapshot() AS seen, count(*) AS count, coalesce(sum(u.jobs), 0) AS jobs, min(u.wake_at) AS wake_at,
            min(u.rank) AS rank, min(u.kind) AS kind, min(u.tenant) AS tenant,
            count(*) = 0 OR (min(u.kind) = max(u.kind) AND min(u.tenant) = max(u.tenant) AND max(u.lease_end) IS NULL) AS are_of_one,
            coalesce(bool_or(u.kind = '' OR u.kind = ANY (p_kinds)), false) AS are_for_us
        INTO v_notes
        FROM (
            SELECT n.* FROM carteiro.notes AS n WHERE n.xid >= pg_snapshot_xmax(v_ring.seen)
            UNION ALL
            SELECT n.* FROM pg_snapshot_xip(v_ring.seen) AS open (xid) JOIN carteiro.notes AS n ON n.xid = open.xid
        ) AS u;
        SELECT count(*) = cardinality(p_kinds) AND v_ring.folded <= 5000 AND o_now >= max(c.seen_at) - p_jitter
                AND pg_snapshot_xmax(v_ring.seen) <= pg_snapshot_xmax(v_notes.seen) AS is_sound,
            array_agg(c.place) AS places, array_agg(c.v) AS v_of, array_agg(c.seen_at) AS seen_of, max(c.v) AS v, max(c.turn) AS turn,
            min(c.lost_from) AS lost_from, bool_or(c.limit_count IS NOT NULL) AS is_limited,
            sum(s.seats) AS seats, max(s.tenant) AS tenant, max(c.kind) FILTER (WHERE s.seats > 0) AS kind, min(a.wake_at) AS alarm
        INTO v_clocks
        FROM carteiro.clocks(p_kinds) AS c
        CROSS JOIN LATERAL (
            SELECT count(*) AS seats, max(f.tenant) AS tenant
            FROM (
                SELECT o.tenant FROM carteiro.seats AS o
                WHERE o.kind = c.kind AND o.wake_at IS NULL AND o.vt >= c.least_vt
                ORDER BY o.vt LIMIT 2
            ) AS f
        ) AS s
        LEFT JOIN LATERAL (
            SELECT o.wake_at FROM carteiro.seats AS o
            WHERE o.kind = c.kind AND o.wake_at >= c.seen_at - p_jitter AND o.wake_at < c_far
            ORDER BY o.wake_at LIMIT 1
        ) AS a ON true;
        IF v_clocks.is_sound AND v_clocks.seats = 0 AND NOT v_notes.are_for_us AND coalesce(v_clocks.alarm, c_far) > o_now THEN
            o_numbers := '{}';
            o_tenants := '{}';
            o_idle_ms := v_clocks.alarm - o_now;
            RETURN;
        END IF;
        v_sync := set_config('synchronous_commit', 'off', true); -- a lost claim is harmless: no need to wait for the disk
        EXIT WHEN NOT (
            v_clocks.is_sound AND p_in_turns AND c_room > 0 AND v_clocks.seats <= 1 AND v_notes.are_of_one
            AND (v_notes.count = 0 OR v_clocks.seats = 0 OR (v_notes.kind = v_clocks.kind AND v_notes.tenant = v_clocks.tenant))
            AND NOT v_clocks.is_limited AND v_clocks.lost_from > o_now AND coalesce(v_clocks.alarm, c_far) > o_now
        );
        v_kind := coalesce(v_notes.kind, v_clocks.kind);
        v_i := array_position(p_kinds, v_kind);
        SELECT s.ctid AS place, s.tenant, t.stride, t.retry_preset, s.wake_at IS NOT NULL AS is_woken,
            least(s.lowest, v_notes.rank) AS lowest, least(s.due_from, v_notes.wake_at) AS due_from,
            CASE WHEN s.wake_at IS NULL THEN s.vt ELSE greatest(s.vt, v_clocks.v_of[v_i]) END AS vt,
            least(s.wake_at, greatest(v_notes.wake_at, v_clocks.seen_of[v_i] - p_jitter)) AS wake_at
        INTO v_seat
        FROM carteiro.seats AS s JOIN carteiro.tenants AS t ON t.id = s.tenant
        WHERE s.tenant = coalesce(v_notes.tenant, v_clocks.tenant) AND s.kind = v_kind
            AND NOT (t.paused OR t.disabled) AND t.cap IS NULL AND t.rate_per_second IS NULL
            AND NOT EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = 'fairness')
        ORDER BY s.n DESC LIMIT 1;
        EXIT WHEN NOT FOUND;
        EXIT WHEN v_seat.is_woken AND NOT v_seat.wake_at BETWEEN v_clocks.seen_of[v_i] - p_jitter AND o_now;
        SELECT count(*) AS found, array_agg(q.message_no) AS numbers, array_agg(q.rank) AS ranks, array_agg(q.place) AS places,
            max(q.claims) AS claims
        INTO v_jobs
        FROM (
            SELECT o.message_no, o.rank, o.ctid AS place, o.claims FROM carteiro.ready AS o
            WHERE o.tenant = v_seat.tenant AND o.kind = v_kind AND o.rank >= v_seat.lowest
            ORDER BY o.rank, o.id LIMIT c_room + 1
        ) AS q;
        SELECT * INTO v_next
        FROM carteiro.next_job(true, v_kind, v_seat.tenant, v_seat.due_from, v_clocks.lost_from, p_longest, o_now);
        EXIT WHEN (v_jobs.claims = 0 AND least(v_next.parked_until, v_next.lease_end, c_far) > o_now) IS NOT TRUE;
        UPDATE carteiro.ring AS r SET n = r.n + 1, seen = v_notes.seen, folded = r.folded + v_notes.count + 1 WHERE r.n = v_ring.n;
        CONTINUE WHEN NOT FOUND; -- another claim was faster, and may have left nothing
        v_taken := least(v_jobs.found, c_room);
        v_turns := (v_taken - 1) / p_batch + 1;
        v_until := o_now + p_lease_ms;
        IF v_jobs.found <= c_room THEN
            v_wake_at := least(v_next.parked_until, v_next.lease_end, v_until);
        END IF;
        o_numbers := v_jobs.numbers[:v_taken];
        WITH seat AS (
            UPDATE carteiro.seats AS s
            SET n = s.n + 1, jobs = s.jobs + v_notes.jobs, processed = s.processed + v_taken, lowest = v_jobs.ranks[v_taken],
                vt = v_seat.vt + v_taken * v_seat.stride, last_turn = v_clocks.turn + v_turns,
                since_turn = CASE WHEN v_seat.is_woken THEN v_clocks.turn ELSE s.since_turn END,
                consecutive = (v_taken - 1) % p_batch + 1, last_processed_at = o_now, wake_at = v_wake_at,
                due_from = CASE WHEN v_wake_at IS NOT NULL THEN o_now ELSE v_seat.due_from END
            WHERE s.ctid = v_seat.place
        ),
        clocks AS (
            UPDATE carteiro.ring_clock AS c
            SET n = c.n + 1, lost_from = least(c.lost_from, v_until), seen_at = o_now, turn = v_clocks.turn + v_turns,
                v = greatest(v_clocks.v, v_seat.vt + (v_turns - 1) * p_batch * v_seat.stride),
                least_vt = CASE
                    WHEN v_wake_at IS NULL AND c.kind = v_kind THEN v_seat.vt + v_taken * v_seat.stride
                    ELSE c.least_vt
                END
            WHERE c.ctid = ANY (v_clocks.places)
        ),
        gone AS (DELETE FROM carteiro.ready WHERE ctid = ANY (v_jobs.places[:v_taken])),
        leased AS (
            INSERT INTO carteiro.leased (claim_id, tenant, kind, parked_until, claims, numbers)
            VALUES (p_claim, v_seat.tenant, v_kind, v_until, 1, o_numbers)
        )
        INSERT INTO carteiro.claims (id) VALUES (p_claim);
        o_tenants := ARRAY[v_seat.tenant];
        IF v_seat.retry_preset IS NOT NULL THEN
            o_presets := jsonb_build_object(v_seat.tenant, v_seat.retry_preset);
        END IF;
        IF v_wake_at IS NULL THEN
            o_idle_ms := 0;
        ELSE -- from now on: the lock may have taken long
            o_idle_ms := greatest(0, least(v_wake_at, v_clocks.alarm) - coalesce(p_now, carteiro.now_ms()));
        END IF;
        EXIT;
    END LOOP;
    IF o_numbers IS NULL THEN
        SELECT * INTO o_now, o_idle_ms, o_numbers, o_claims, o_tenants, o_presets
        FROM carteiro.claim_of_many(
            p_kinds, p_limit, p_ahead, p_claim, p_lease_ms, p_batch, p_in_turns, p_readied, p_suspect, p_draws, p_longest,
            p_jitter, p_now
        );
    END IF;
    IF cardinality(o_numbers) BETWEEN 1 AND c_few THEN
        o_messages := (SELECT json_agg(m) FROM carteiro.claimed(o_numbers, o_tenants) AS m);
    END IF;
END
$$;

-- The claimed messages, in the order of their numbers; unknown ones are left out. p_tenants: those of the messages. Volatile:
-- a claim may have waited for others, and what they committed is read by a later snapshot than the claim's statement has.
CREATE OR REPLACE FUNCTION carteiro.claimed(p_no bigint[], p_tenants text[]) RETURNS TABLE (
    o_item bigint, o_no bigint, o_is_finished boolean, o_suppresses boolean, o_id text, o_kind text, o_tenant text,
    o_content text, o_request_id text, o_delivery text, o_attempts integer, o_charged integer, o_in_doubt integer,
    o_revision integer, o_is_open boolean, o_expires_at bigint, o_is_cancelled boolean, o_recipient_id text, o_preset text,
    o_provider text
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_suppressing text[] := ARRAY(
        SELECT t.id
        FROM unnest(p_tenants) AS t (id)
        CROSS JOIN LATERAL (
            SELECT FROM carteiro.suppressions AS s WHERE s.tenant = t.id
            ORDER BY s.tenant, s.key, s.reason LIMIT 1 -- so that no table is scanned for tenants that have none
        ) AS s
    );
BEGIN
    RETURN QUERY
    SELECT j.item, m.no, m.finished_at IS NOT NULL, m.tenant = ANY (v_suppressing), m.id, m.kind, m.tenant, m.content,
        m.request_id, m.delivery, m.attempts, m.charged, m.in_doubt, m.revision, m.state = 'SENT_ATTEMPT', m.expires_at,
        m.cancel_requested_at IS NOT NULL, m.recipient_id,
        CASE WHEN m.template_type IS NOT NULL THEN (
            SELECT CASE WHEN t.deleted_at IS NULL THEN t.retry_preset END FROM carteiro.templates AS t
            WHERE t.tenant = m.tenant AND t.type = m.template_type
            ORDER BY t.version DESC LIMIT 1
        ) END,
        m.provider
    FROM unnest(p_no) WITH ORDINALITY AS j (no, item)
    JOIN carteiro.ledger AS m ON m.no = j.no;
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
    v_no bigint[]; v_claim text[]; v_kind text[]; v_tenant text[]; v_claims integer[]; v_id text[]; v_rank bigint[];
    v_given record;
BEGIN
    PERFORM carteiro.lock_ring(); -- tokens are claim's
    PERFORM carteiro.lock_claims(p_claims); -- before the entries are read: else an attempt that is declared now is given back
    SELECT array_agg(m.no), array_agg(a.claim), array_agg(m.tenant), array_agg(m.kind) INTO v_no, v_claim, v_tenant, v_kind
    FROM unnest(p_ids, p_claims) AS a (id, claim) JOIN carteiro.messages AS m ON m.id = a.id
    WHERE NOT EXISTS (
        SELECT FROM carteiro.entries AS e
        WHERE e.message_no = m.no AND e.state = 'SENT_ATTEMPT' AND e.holder = a.claim
    );
    SELECT array_agg(n), array_agg(t.o_claim), array_agg(t.o_tenant), array_agg(t.o_kind), array_agg(greatest(0, t.o_claims - 1))
    INTO v_no, v_claim, v_tenant, v_kind, v_claims
    FROM carteiro.take_leases(v_no, v_claim, v_tenant, v_kind) AS t, unnest(t.o_numbers) AS n;
    PERFORM carteiro.end_claims(p_claims);
    has_work := v_no IS NOT NULL;
    IF NOT has_work THEN
        RETURN;
    END IF;
    SELECT array_agg(m.id ORDER BY g.i), array_agg(carteiro.rank(m.priority, m.due_at) ORDER BY g.i) INTO v_id, v_rank
    FROM unnest(v_no) WITH ORDINALITY AS g (no, i) JOIN carteiro.ledger AS m ON m.no = g.no;
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
        SELECT g.kind, g.claim, count(*) AS jobs FROM unnest(v_kind, v_claim) AS g (kind, claim) GROUP BY g.kind, g.claim
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
    SELECT array_agg(m.id), array_agg(l.claim_id) INTO v_ids, v_claims
    FROM carteiro.leased AS l CROSS JOIN LATERAL unnest(l.numbers) AS n JOIN carteiro.messages AS m ON m.no = n
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
DECLARE
    v_no bigint[]; v_claim text[]; v_tenant text[]; v_kind text[]; v_moved bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM 1 FROM carteiro.entries AS e
    WHERE e.message_no = ANY (ARRAY(SELECT m.no FROM carteiro.messages AS m WHERE m.id = ANY (p_ids)))
    ORDER BY e.message_no
    FOR NO KEY UPDATE;
    SELECT array_agg(m.no), array_agg(a.claim), array_agg(m.tenant), array_agg(m.kind) INTO v_no, v_claim, v_tenant, v_kind
    FROM unnest(p_ids, p_claims) AS a (id, claim) JOIN carteiro.messages AS m ON m.id = a.id
    WHERE EXISTS (SELECT FROM carteiro.lease_in(a.claim, m.no, m.tenant, m.kind));
    v_moved := carteiro.move_leases(v_no, v_claim, v_tenant, v_kind, p_until, true);
    UPDATE carteiro.entries AS e SET held_until = greatest(e.held_until, p_until), version = e.version + 1
    FROM unnest(v_no, v_claim) AS a (no, claim)
    WHERE e.message_no = a.no AND a.no = ANY (v_moved) AND e.held_until IS NOT NULL AND e.holder = a.claim;
    RETURN QUERY
    SELECT m.id, a.claim FROM unnest(v_no, v_claim) AS a (no, claim) JOIN carteiro.messages AS m ON m.no = a.no
    WHERE a.no = ANY (v_moved);
END
$$;
