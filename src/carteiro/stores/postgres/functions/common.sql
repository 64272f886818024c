-- Operations that must be one step on the server: a process that is stopped, killed or disconnected during one holds no
-- lock that others wait for. A transaction that changes entries and leases of messages locks the entries first, by number.
-- Plans must not depend on statistics, which are always wrong for a queue: hence the settings of each function.
--
-- The files of this folder are not migrations: all are applied again when one of their texts changes, in the order of
-- migrating.py, between `take_down` and `put_up`.

-- Drops the functions, views and policies of the schema; returns the rights that were granted on them. Those that other
-- objects depend on (a report, for example) stay and are replaced: hence CREATE OR REPLACE everywhere.
CREATE OR REPLACE FUNCTION carteiro.take_down() RETURNS text[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_schema CONSTANT oid := 'carteiro'::regnamespace;
    v_rights text[];
    v_drop text;
    v_dropped boolean := true;
BEGIN
    PERFORM carteiro.hide_table_queue();
    SELECT array_agg(
        format(
            'GRANT %s ON %s TO %s', r.what, r.place,
            CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE r.grantee::regrole::text END
        )
    ) INTO v_rights
    FROM (
        SELECT g.privilege_type AS what, c.oid::regclass::text AS place, g.grantee, c.relowner AS owner
        FROM pg_class AS c, aclexplode(c.relacl) AS g
        WHERE c.relnamespace = c_schema AND c.relkind = 'v'
        UNION ALL
        SELECT format('%s (%I)', g.privilege_type, a.attname), c.oid::regclass::text, g.grantee, c.relowner
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid, aclexplode(a.attacl) AS g
        WHERE c.relnamespace = c_schema AND c.relkind = 'v'
        UNION ALL
        SELECT g.privilege_type, format('FUNCTION %s', p.oid::regprocedure), g.grantee, p.proowner
        FROM pg_proc AS p, aclexplode(p.proacl) AS g
        WHERE p.pronamespace = c_schema
    ) AS r
    WHERE r.grantee <> r.owner;
    FOR v_drop IN
        SELECT format('DROP POLICY %I ON %s', p.polname, c.oid::regclass)
        FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
        WHERE c.relnamespace = c_schema
    LOOP
        EXECUTE v_drop;
    END LOOP;
    WHILE v_dropped LOOP
        v_dropped := false;
        FOR v_drop IN
            SELECT format('DROP VIEW %s', c.oid::regclass) FROM pg_class AS c
            WHERE c.relnamespace = c_schema AND c.relkind = 'v'
            UNION ALL
            SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc AS p
            WHERE p.pronamespace = c_schema AND p.proname <> 'take_down'
        LOOP
            BEGIN
                EXECUTE v_drop;
                v_dropped := true;
            EXCEPTION WHEN dependent_objects_still_exist THEN
                NULL; -- perhaps in the next round
            END;
        END LOOP;
    END LOOP;
    RETURN v_rights;
END
$$;

-- Grants these rights again, except on objects that no longer exist, and publishes the views for others.
CREATE OR REPLACE FUNCTION carteiro.put_up(p_rights text[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_right text;
BEGIN
    FOREACH v_right IN ARRAY coalesce(p_rights, '{}') LOOP
        BEGIN
            EXECUTE v_right;
        EXCEPTION WHEN undefined_table OR undefined_column OR undefined_function THEN
            NULL;
        END;
    END LOOP;
    PERFORM carteiro.show_table_queue();
END
$$;

-- The server's clock, in milliseconds.
CREATE OR REPLACE FUNCTION carteiro.now_ms() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Priority first, then due time: one number that sorts like both.
CREATE OR REPLACE FUNCTION carteiro.rank(priority integer, due_at bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT (priority::bigint << 48) | greatest(due_at, 0) $$;

CREATE OR REPLACE FUNCTION carteiro.due_of(rank bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT rank & ((1::bigint << 48) - 1) $$;

-- The moment of a number of milliseconds since 1970, for the views.
CREATE OR REPLACE FUNCTION carteiro.moment(ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT to_timestamp(ms / 1000.0) $$;

-- JSON text that Postgres can parse: characters that it cannot store are shown as U+FFFD.
CREATE OR REPLACE FUNCTION carteiro.readable(json_text text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT replace(json_text, '\u0000', '\ufffd')::json $$;

-- The texts that dead letters are searched in, with ASCII letters in lower case. They are stored: to read them from the failure
-- and the message of each dead letter takes twenty times as long.
CREATE OR REPLACE FUNCTION carteiro.said(p_code text, p_failure json, p_address text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT lower(
        (
            p_code || E'\n' || coalesce(carteiro.readable(p_failure::text) ->> 'reason', '')
            || E'\n' || coalesce(p_address, '')
        ) COLLATE "C"
    );
$$;

-- For readers: a message with what has happened to it.
CREATE OR REPLACE VIEW carteiro.ledger AS
SELECT
    m.no, m.id, m.tenant, m.kind, m.declares, m.delivery, m.priority, m.ttl_ms, m.request_id, m.external_id,
    m.recipient_id, m.to_address, m.subject, m.template_type, m.tags, m.created_at,
    coalesce(e.version, 0) AS version, coalesce(e.state, 'ENQUEUED') AS state, coalesce(e.due_at, m.due_at) AS due_at,
    coalesce(e.expires_at, m.due_at + m.ttl_ms) AS expires_at, coalesce(e.attempts, 0) AS attempts,
    coalesce(e.charged, 0) AS charged, coalesce(e.in_doubt, 0) AS in_doubt, coalesce(e.round, 1) AS round,
    coalesce(e.revision, 1) AS revision, e.holder, e.held_until, e.cancel_requested_at, e.evidence, e.provider,
    e.provider_message_id, e.failure, e.duration_ms, e.finished_at, e.timeline, m.content,
    e.retry_of
FROM carteiro.messages AS m LEFT JOIN carteiro.entries AS e ON e.message_no = m.no;

-- The events of a timeline. Names and values stay as they were written: operators of JSON refuse characters that Postgres
-- cannot store.
CREATE OR REPLACE FUNCTION carteiro.told(timeline text)
RETURNS TABLE (place bigint, type text, metadata json, created_at bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT t.place, trim(f.parts[1]::text, '"'), f.parts[3], f.parts[2]::text::bigint
    FROM json_array_elements(('[' || rtrim(timeline, ',') || ']')::json) WITH ORDINALITY AS t (event, place)
    CROSS JOIN LATERAL (
        SELECT array_agg(p.part ORDER BY p.n) AS parts FROM json_array_elements(t.event) WITH ORDINALITY AS p (part, n)
    ) AS f
$$;

-- All events, in order: the acceptance of an e-mail, the timeline of the entry, then those that it has no room for.
CREATE OR REPLACE VIEW carteiro.timelines AS
SELECT (m.no << 21) + v.place AS id, m.no AS message_no, m.id AS message_id, v.type, v.metadata, v.created_at
FROM carteiro.messages AS m
CROSS JOIN LATERAL (
    SELECT
        0::bigint AS place, 'ENQUEUED' AS type,
        CASE WHEN m.request_id = '' THEN '{}' ELSE json_build_object('requestId', m.request_id) END AS metadata,
        m.created_at
    WHERE m.kind = 'email:send'
    UNION ALL
    SELECT t.place, t.type, t.metadata, t.created_at
    FROM carteiro.entries AS e CROSS JOIN LATERAL carteiro.told(e.timeline) AS t
    WHERE e.message_no = m.no
    UNION ALL
    SELECT 1000000 + r.position, r.type, r.metadata, r.created_at
    FROM carteiro.events AS r
    WHERE r.message_no = m.no
) AS v;
