-- Events are partitioned by ranges of messages. When all messages of a part are gone, it is dropped as one table: no dead
-- rows, nothing to vacuum.

-- True if events may stay until their whole part is dropped: for parts that filled quickly, so that nothing is kept much
-- longer than its retention.
CREATE OR REPLACE FUNCTION carteiro.is_dropped_whole(part carteiro.event_parts) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$ SELECT coalesce(part.filled_at - part.opened_at <= 172800000, false) $$; -- two days

-- Creates parts for the messages up to a number. Numbers that are already in use have their events in the rest: a part
-- begins well after them. Only the rest is locked and scanned: `lock_not_available` or `check_violation` if another
-- transaction uses it.
CREATE OR REPLACE FUNCTION carteiro.part_events(p_up_to bigint, p_width bigint) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '100ms'
AS $$
DECLARE
    v_from bigint;
BEGIN
    LOOP
        SELECT CASE WHEN s.last_value < p.to_no THEN p.to_no ELSE s.last_value + 100000 END INTO v_from
        FROM (SELECT max(e.to_no) AS to_no FROM carteiro.event_parts AS e) AS p, carteiro.message_no AS s;
        EXIT WHEN v_from > p_up_to;
        EXECUTE format('CREATE TABLE carteiro.events_%s (LIKE carteiro.events INCLUDING DEFAULTS)', v_from);
        EXECUTE format(
            'ALTER TABLE carteiro.events ATTACH PARTITION carteiro.events_%1$s FOR VALUES FROM (%1$s) TO (%2$s)',
            v_from, v_from + p_width
        );
        INSERT INTO carteiro.event_parts (from_no, to_no) VALUES (v_from, v_from + p_width);
    END LOOP;
END
$$;

-- Deletes some events of deleted messages from a part that many other messages keep; after the last, the part is pruned
-- row by row.
CREATE OR REPLACE FUNCTION carteiro.forget_orphans(p_part bigint) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    c_some CONSTANT integer := 1000; -- messages
    v_gone bigint;
BEGIN
    EXECUTE format(
        'DELETE FROM carteiro.events_%1$s AS d WHERE d.message_no IN ('
        'SELECT DISTINCT e.message_no FROM carteiro.events_%1$s AS e WHERE NOT EXISTS ('
        'SELECT FROM carteiro.entries AS n WHERE n.message_no = e.message_no) LIMIT %2$s)', p_part, c_some
    );
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    IF v_gone = 0 THEN
        UPDATE carteiro.event_parts AS p SET opened_at = 0 WHERE p.from_no = p_part;
    END IF;
    RETURN true;
END
$$;

-- Creates future parts, a day's messages each, and drops at most one whose messages are all gone; true if there may be more
-- to do. If a few messages keep a part much longer than the others (p_until: those that finished before it are gone), their
-- events move to the rest. Nobody waits long for this: a part in use is left for the next call.
CREATE OR REPLACE FUNCTION carteiro.tend_events(p_until bigint, p_now bigint) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '100ms' SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    c_day CONSTANT bigint := 86400000;
    c_few CONSTANT integer := 1000;
    c_rest CONSTANT bigint := 268435456; -- bytes that can be scanned while others wait
    v_last bigint := (SELECT s.last_value FROM carteiro.message_no AS s);
    v_width bigint;
    v_part carteiro.event_parts;
    v_left bigint[];
BEGIN
    BEGIN
        LOCK TABLE carteiro.event_parts IN SHARE ROW EXCLUSIVE MODE NOWAIT; -- one process at a time
    EXCEPTION WHEN lock_not_available THEN
        RETURN false;
    END;
    UPDATE carteiro.event_parts AS p
    SET opened_at = (SELECT m.created_at FROM carteiro.messages AS m WHERE m.no >= p.from_no ORDER BY m.no LIMIT 1)
    WHERE p.opened_at IS NULL AND p.from_no <= v_last;
    UPDATE carteiro.event_parts AS p
    SET filled_at = coalesce(
        (SELECT m.created_at FROM carteiro.messages AS m WHERE m.no < p.to_no ORDER BY m.no DESC LIMIT 1), p_now
    )
    WHERE p.filled_at IS NULL AND p.to_no <= v_last;

    SELECT greatest(500000, v_last - m.no) INTO v_width
    FROM carteiro.messages AS m WHERE m.created_at >= p_now - c_day ORDER BY m.created_at, m.no LIMIT 1;
    v_width := coalesce(v_width, 500000);
    IF pg_table_size('carteiro.events_rest') <= c_rest THEN
        BEGIN
            PERFORM carteiro.part_events(v_last + greatest(2000000, v_width), v_width);
        EXCEPTION WHEN lock_not_available OR check_violation THEN
            NULL;
        END;
    END IF;

    FOR v_part IN
        SELECT * FROM carteiro.event_parts AS p WHERE p.filled_at IS NOT NULL AND p_until IS NOT NULL
        ORDER BY p.from_no
    LOOP
        v_left := ARRAY(
            SELECT e.message_no FROM carteiro.entries AS e
            WHERE e.message_no >= v_part.from_no AND e.message_no < v_part.to_no
            LIMIT c_few + 1
        );
        CONTINUE WHEN cardinality(v_left) > 0
            AND (NOT carteiro.is_dropped_whole(v_part) OR v_part.filled_at > p_until - 2 * c_day);
        IF cardinality(v_left) > c_few THEN
            RETURN carteiro.forget_orphans(v_part.from_no);
        END IF;
        BEGIN
            EXECUTE format('ALTER TABLE carteiro.events DETACH PARTITION carteiro.events_%s', v_part.from_no);
            EXECUTE format(
                'INSERT INTO carteiro.events SELECT * FROM carteiro.events_%s WHERE message_no = ANY ($1)', v_part.from_no
            ) USING v_left;
            EXECUTE format('DROP TABLE carteiro.events_%s', v_part.from_no);
            DELETE FROM carteiro.event_parts AS p WHERE p.from_no = v_part.from_no;
            RETURN true;
        EXCEPTION WHEN lock_not_available THEN
            RETURN false;
        END;
    END LOOP;
    RETURN false;
END
$$;
