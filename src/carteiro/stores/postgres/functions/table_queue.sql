-- The table queue: enqueue e-mails by SQL (docs/how-to/enqueue-from-sql.md).
--
-- `email_queue` is a view over the ledger: a table would have to be written by every step of a worker. An INSERT
-- accepts the e-mail at once, inside the caller's transaction. An UPDATE is recorded in `queue_changes`, shown at once, and
-- applied by a process of Carteiro by the rules of policy/lifecycle.py. So a role of the database can never lock a row or
-- a table that workers write (docs/explanation/decisions/0035-changes-by-sql-are-requests.md).

-- A message id, a UUIDv7, which begins with the milliseconds since 1970: a random UUID whose first six bytes and version
-- are replaced.
CREATE OR REPLACE FUNCTION carteiro.new_id() RETURNS uuid
LANGUAGE sql VOLATILE
AS $$
    SELECT encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(carteiro.now_ms()) FROM 3) FROM 1 FOR 6),
            52, 1
        ), 53, 1),
        'hex'
    )::uuid
$$;

-- --- who sees a row -----------------------------------------------------------------------------

-- Also for the owner, and so for everything that runs with its rights: the view, the triggers, the functions.
CREATE POLICY of_tenant ON carteiro.queue_rows
USING ((SELECT carteiro.sees_all()) OR tenant = (SELECT carteiro.acting_tenant()));

-- --- what people see ---------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION carteiro.refuse_row_locks() RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    RAISE EXCEPTION 'email_queue: rows cannot be locked, workers lock them themselves'
        USING ERRCODE = 'feature_not_supported',
        HINT = 'Leave FOR UPDATE out. Set status = ''cancelled'' to keep a row from workers.';
END
$$;

CREATE POLICY read ON carteiro.row_locks FOR SELECT USING (true);
CREATE POLICY lock ON carteiro.row_locks FOR UPDATE USING (carteiro.refuse_row_locks());

-- Two parts, so that each has a plan of its own. They check the tenant again, because the policy does not bind a
-- superuser, and check it in each table (see views.sql). `c` is the newest requested change that still matters.
-- `retries` counts the retries that were scheduled: a failure that ended it scheduled none.
CREATE OR REPLACE VIEW carteiro.table_queue WITH (security_barrier) AS
SELECT
    q.id, q.user_id, q.template_type, q.to_address AS recipient_email,
    carteiro.readable(b.content)::jsonb #> '{template,variables}' AS payload,
    CASE
        WHEN c.is_shown THEN c.status
        WHEN q.state = 'SENT' THEN 'sent'
        WHEN q.state = 'CANCELLED' THEN 'cancelled'
        WHEN q.state IN ('FAILED', 'EXPIRED') THEN 'failed'
        ELSE 'pending'
    END AS status,
    CASE
        WHEN c.is_shown THEN c.retries
        WHEN q.state = 'FAILED' AND carteiro.readable(q.failure::text) ->> 'retryable' = 'false'
            THEN least(greatest(q.charged - 1, 0), q.max_retries)
        ELSE least(q.charged, q.max_retries)
    END AS retries,
    coalesce(c.max_retries, q.max_retries) AS max_retries,
    (
        SELECT carteiro.moment(max(v.created_at)) FROM carteiro.timelines AS v
        WHERE v.message_no = q.message_no AND v.type = 'SENT_ATTEMPT'
    ) AS last_attempt_at,
    CASE
        WHEN c.is_shown THEN c.next_retry_at
        WHEN q.finished_at IS NULL THEN carteiro.moment(q.due_at)
    END AS next_retry_at,
    CASE
        WHEN c.is_shown THEN c.error_message
        WHEN q.state = 'SENT' AND (q.attempts > 1 OR q.round > 1) THEN (
            SELECT carteiro.readable(v.metadata::text) ->> 'errorMessage' FROM carteiro.timelines AS v
            WHERE v.message_no = q.message_no AND v.type IN ('RETRY_SCHEDULED', 'FAILED', 'EXPIRED')
            ORDER BY v.id DESC LIMIT 1
        )
        ELSE carteiro.readable(q.failure::text) ->> 'reason'
    END AS error_message,
    q.provider_message_id AS resend_id, carteiro.moment(q.created_at) AS created_at
FROM carteiro.asking AS a
CROSS JOIN LATERAL (
    SELECT
        r.id, r.message_no, r.user_id, r.max_retries, m.template_type, m.to_address, m.created_at,
        coalesce(e.state, 'ENQUEUED') AS state, coalesce(e.due_at, m.due_at) AS due_at, coalesce(e.charged, 0) AS charged,
        coalesce(e.attempts, 0) AS attempts, coalesce(e.round, 1) AS round, e.failure, e.provider_message_id,
        e.finished_at
    FROM carteiro.queue_rows AS r
    JOIN carteiro.messages AS m ON m.no = r.message_no
    LEFT JOIN carteiro.entries AS e ON e.message_no = r.message_no
    WHERE a.sees_all
    UNION ALL
    SELECT
        r.id, r.message_no, r.user_id, r.max_retries, m.template_type, m.to_address, m.created_at,
        coalesce(e.state, 'ENQUEUED') AS state, coalesce(e.due_at, m.due_at) AS due_at, coalesce(e.charged, 0) AS charged,
        coalesce(e.attempts, 0) AS attempts, coalesce(e.round, 1) AS round, e.failure, e.provider_message_id,
        e.finished_at
    FROM carteiro.queue_rows AS r
    JOIN carteiro.messages AS m ON m.no = r.message_no
    LEFT JOIN carteiro.entries AS e ON e.message_no = r.message_no AND e.tenant = a.tenant
    WHERE NOT a.sees_all AND r.tenant = a.tenant AND m.tenant = a.tenant
) AS q
LEFT JOIN LATERAL (
    SELECT t.content FROM carteiro.messages AS t WHERE t.no = q.message_no OFFSET 0
) AS b ON true
LEFT JOIN LATERAL (
    SELECT
        r.status, r.retries, r.max_retries, r.next_retry_at, r.error_message,
        q.finished_at IS NULL OR (r.is_revival AND q.state IN ('FAILED', 'EXPIRED')) AS is_shown
    FROM carteiro.queue_changes AS r WHERE r.message_no = q.message_no
    ORDER BY r.no DESC LIMIT 1
) AS c ON true
LEFT JOIN carteiro.row_locks AS l ON l.no = 0;

-- The public name. This view is moved into `public` (see the end); functions use the other one.
CREATE OR REPLACE VIEW carteiro.email_queue AS SELECT * FROM carteiro.table_queue;

-- --- putting in --------------------------------------------------------------------------------

-- Accepts an e-mail of the calling tenant, inside the caller's transaction. SQL cannot render: the content names the
-- template and the variables, and the worker renders it.
CREATE OR REPLACE FUNCTION carteiro.put_row(
    p_id uuid, p_user_id uuid, p_template_type text, p_recipient_email text, p_payload jsonb, p_max_retries integer,
    p_due_at bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    c_ttl_ms CONSTANT bigint := 86400000;
    v_tenant text := carteiro.acting_tenant();
    v_to text := regexp_replace(p_recipient_email, '@[^@]*$', '')
        || lower(substring(p_recipient_email FROM '@[^@]*$'));
    v_payload jsonb := coalesce(p_payload, '{}');
    v_from text := (SELECT t.default_from FROM carteiro.tenants AS t WHERE t.id = v_tenant);
    v_content text;
    v_request text := gen_random_uuid()::text;
    v_trace text := current_setting('carteiro.traceparent', true);
    v_trace_state text := current_setting('carteiro.tracestate', true);
    v_now bigint := carteiro.now_ms();
    v_why text;
BEGIN
    IF v_tenant IS NULL THEN
        RAISE EXCEPTION 'role % stands for no tenant', carteiro.asking_role()
            USING ERRCODE = 'insufficient_privilege',
            HINT = 'Make each role that uses the table queue a client role itself: membership in one is not enough.';
    END IF;
    IF coalesce(p_template_type, '') !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$' THEN
        RAISE EXCEPTION 'template_type must be the name of a template: 1 to 100 letters, digits, "_", "-" or "."'
            USING ERRCODE = 'check_violation';
    END IF;
    IF v_to IS NULL OR length(v_to) > 320 OR v_to ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'recipient_email must be an e-mail address' USING ERRCODE = 'check_violation';
    END IF;
    IF jsonb_typeof(v_payload) <> 'object' THEN
        RAISE EXCEPTION 'payload must be a JSON object: the variables of the template, by name'
            USING ERRCODE = 'check_violation';
    END IF;
    PERFORM carteiro.check_max_retries(p_max_retries);
    v_content := '{"maxRetries":' || p_max_retries || ',' || substr((
        jsonb_build_object('to', v_to, 'template', jsonb_build_object('type', p_template_type, 'variables', v_payload))
        || CASE WHEN v_from IS NULL THEN '{}' ELSE jsonb_build_object('from', v_from) END
        || CASE
            WHEN p_user_id IS NULL THEN '{}'
            ELSE jsonb_build_object('recipient', jsonb_build_object('email', v_to, 'externalId', p_user_id))
        END
    )::text, 2);
    IF octet_length(v_content) > 1048576 THEN
        RAISE EXCEPTION 'payload must have at most 1 MiB' USING ERRCODE = 'check_violation';
    END IF;
    -- As policy/trace_context.py has it; zeros and an unknown version are ignored there. A number alone in braces would
    -- stand for a list of columns.
    IF v_trace ~ '^[0-9a-f]{2,2}-[0-9a-f]{32,32}-[0-9a-f]{16,16}-[0-9a-f]{2,2}$' THEN
        IF length(v_trace_state) BETWEEN 1 AND 512 AND v_trace_state ~ '^[ -~]*$' THEN
            v_trace := v_trace || ' ' || v_trace_state;
        END IF;
        v_content := left(v_content, -1) || ',"trace-context":' || to_json(v_trace)::text || '}';
    END IF;
    SELECT a.o_why INTO v_why FROM carteiro.accept(
        ARRAY[greatest(v_now, p_due_at)], ARRAY[v_content],
        '{}', '{}', v_now, p_id => ARRAY[p_id::text], p_tenant => ARRAY[v_tenant], p_kind => ARRAY['email:send'],
        p_declares => ARRAY[true], p_delivery => ARRAY['at_least_once'], p_priority => ARRAY[5],
        p_ttl_ms => ARRAY[c_ttl_ms], p_request_id => ARRAY[v_request], p_to_address => ARRAY[v_to],
        p_template_type => ARRAY[p_template_type]
    ) AS a;
    CASE v_why
        WHEN 'known' THEN
            RAISE EXCEPTION 'there is an e-mail with the id % already', p_id USING ERRCODE = 'unique_violation';
        WHEN 'disabled' THEN
            RAISE EXCEPTION 'tenant "%" is disabled', v_tenant USING ERRCODE = 'insufficient_privilege';
        WHEN 'unknown' THEN
            RAISE EXCEPTION 'there is no tenant "%"', v_tenant
                USING ERRCODE = 'foreign_key_violation', HINT = 'Create it with carteiro tenant add.';
        ELSE
            INSERT INTO carteiro.queue_rows (id, message_no, tenant, user_id, max_retries)
            SELECT p_id, m.no, v_tenant, p_user_id, p_max_retries FROM carteiro.messages AS m WHERE m.id = p_id::text;
    END CASE;
END
$$;

-- A moment in milliseconds since 1970; nothing is due after 2199.
CREATE OR REPLACE FUNCTION carteiro.in_ms(p_at timestamptz) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF p_at >= '2200-01-01Z'::timestamptz THEN
        RAISE EXCEPTION 'next_retry_at must be before 2200' USING ERRCODE = 'check_violation';
    END IF;
    RETURN floor(extract(epoch FROM greatest(p_at, to_timestamp(0))) * 1000);
END
$$;

CREATE OR REPLACE FUNCTION carteiro.check_max_retries(p_max_retries integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF p_max_retries IS NULL OR p_max_retries NOT BETWEEN 0 AND 100 THEN
        RAISE EXCEPTION 'max_retries must be 0 to 100' USING ERRCODE = 'check_violation';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION carteiro.insert_into_email_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_refused text := concat_ws(
        ', ',
        CASE WHEN NEW.status <> 'pending' THEN 'status' END,
        CASE WHEN NEW.retries <> 0 THEN 'retries' END,
        CASE WHEN NEW.last_attempt_at IS NOT NULL THEN 'last_attempt_at' END,
        CASE WHEN NEW.error_message IS NOT NULL THEN 'error_message' END,
        CASE WHEN NEW.resend_id IS NOT NULL THEN 'resend_id' END,
        CASE WHEN NEW.created_at IS NOT NULL THEN 'created_at' END
    );
BEGIN
    IF v_refused <> '' THEN
        RAISE EXCEPTION 'email_queue: % cannot be inserted, a new row is pending and was not tried yet', v_refused
            USING ERRCODE = 'check_violation',
            HINT = 'Insert user_id, template_type, recipient_email, payload, and optionally id, max_retries, next_retry_at.';
    END IF;
    NEW.id := coalesce(NEW.id, carteiro.new_id());
    NEW.payload := coalesce(NEW.payload, '{}');
    NEW.status := 'pending';
    NEW.retries := 0;
    NEW.max_retries := coalesce(NEW.max_retries, 3);
    PERFORM carteiro.put_row(
        NEW.id, NEW.user_id, NEW.template_type, NEW.recipient_email, NEW.payload, NEW.max_retries,
        carteiro.in_ms(NEW.next_retry_at)
    );
    NEW.created_at := clock_timestamp();
    NEW.next_retry_at := greatest(NEW.next_retry_at, NEW.created_at);
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER accepted INSTEAD OF INSERT ON carteiro.table_queue
FOR EACH ROW EXECUTE FUNCTION carteiro.insert_into_email_queue();

-- --- changing ----------------------------------------------------------------------------------

-- Records a requested change of a row, which is shown as p_shown until it is applied. No existing row is changed: the
-- process that applies it would wait for this transaction. So a row has only a few requests at a time.
CREATE OR REPLACE FUNCTION carteiro.request_change(
    p_shown carteiro.table_queue, p_what text, p_number bigint DEFAULT NULL, p_reason text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    c_most CONSTANT integer := 20;
    c_longest CONSTANT integer := 500; -- characters of a reason, as policy/lifecycle.py keeps them
    v_no bigint;
    v_tenant text;
    v_open bigint;
    v_is_revival boolean;
BEGIN
    SELECT q.message_no, q.tenant INTO v_no, v_tenant FROM carteiro.queue_rows AS q WHERE q.id = p_shown.id;
    SELECT count(*), coalesce(bool_or(r.is_revival), false) INTO v_open, v_is_revival
    FROM carteiro.queue_changes AS r WHERE r.message_no = v_no;
    IF v_open >= c_most THEN
        RAISE EXCEPTION 'e-mail % has % changes that are not applied yet', p_shown.id, v_open
            USING ERRCODE = 'program_limit_exceeded',
            HINT = 'Commit, wait until a worker or carteiro process has applied them, and try again.';
    END IF;
    INSERT INTO carteiro.queue_changes (
        message_no, tenant, what, number, reason, role, status, retries, max_retries, next_retry_at, error_message,
        is_revival
    )
    VALUES (
        v_no, v_tenant, p_what, p_number, left(p_reason, c_longest), carteiro.asking_role(), p_shown.status,
        p_shown.retries, p_shown.max_retries, p_shown.next_retry_at, left(p_shown.error_message, c_longest),
        v_is_revival OR p_what = 'redrive'
    );
    PERFORM pg_notify(w.channel, 'change') FROM carteiro.wake_channel AS w;
END
$$;

-- Two booleans: a worker has claimed the e-mail; it is being sent.
CREATE OR REPLACE FUNCTION carteiro.has_worker(p_id uuid, OUT is_claimed boolean, OUT is_sending boolean)
LANGUAGE sql STABLE
AS $$
    SELECT
        m.state = 'SENT_ATTEMPT' OR EXISTS (SELECT FROM carteiro.lease_of(m.no, m.tenant, m.kind)),
        m.state = 'SENT_ATTEMPT'
    FROM carteiro.queue_rows AS q JOIN carteiro.ledger AS m ON m.no = q.message_no
    WHERE q.id = p_id
$$;

CREATE OR REPLACE FUNCTION carteiro.update_email_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_refused text := concat_ws(
        ', ',
        CASE WHEN NEW.id IS DISTINCT FROM OLD.id THEN 'id' END,
        CASE WHEN NEW.user_id IS DISTINCT FROM OLD.user_id THEN 'user_id' END,
        CASE WHEN NEW.template_type IS DISTINCT FROM OLD.template_type THEN 'template_type' END,
        CASE WHEN NEW.recipient_email IS DISTINCT FROM OLD.recipient_email THEN 'recipient_email' END,
        CASE WHEN NEW.payload IS DISTINCT FROM OLD.payload THEN 'payload' END,
        CASE WHEN NEW.retries IS DISTINCT FROM OLD.retries THEN 'retries' END,
        CASE WHEN NEW.last_attempt_at IS DISTINCT FROM OLD.last_attempt_at THEN 'last_attempt_at' END,
        CASE WHEN NEW.error_message IS DISTINCT FROM OLD.error_message THEN 'error_message' END,
        CASE WHEN NEW.resend_id IS DISTINCT FROM OLD.resend_id THEN 'resend_id' END,
        CASE WHEN NEW.created_at IS DISTINCT FROM OLD.created_at THEN 'created_at' END
    );
    v_cancels boolean := false;
    v_redrives boolean := false;
    v_moves boolean;
    v_limits boolean := NEW.max_retries IS DISTINCT FROM OLD.max_retries;
    v_worker record;
    v_shown carteiro.table_queue := NEW;
BEGIN
    IF v_refused <> '' THEN
        RAISE EXCEPTION 'email_queue: % cannot be changed, only status, max_retries and next_retry_at can', v_refused
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status IS DISTINCT FROM OLD.status THEN
        CASE NEW.status
            WHEN 'cancelled' THEN
                IF OLD.status <> 'pending' THEN
                    RAISE EXCEPTION 'e-mail % is %: only a pending one can be cancelled', OLD.id, OLD.status
                        USING ERRCODE = 'check_violation';
                END IF;
                v_cancels := true;
            WHEN 'pending' THEN
                IF OLD.status <> 'failed' THEN
                    RAISE EXCEPTION 'e-mail % is %: only a failed one can be made pending again', OLD.id, OLD.status
                        USING ERRCODE = 'check_violation', HINT = 'Insert another one.';
                ELSIF OLD.payload IS NULL THEN
                    RAISE EXCEPTION 'the content of e-mail % is past its retention', OLD.id
                        USING ERRCODE = 'check_violation', HINT = 'Insert another one.';
                END IF;
                v_redrives := true;
            ELSE
                RAISE EXCEPTION 'status can only be set to cancelled or pending: workers set sent and failed'
                    USING ERRCODE = 'check_violation', HINT = 'mark_email_failed counts a failure.';
        END CASE;
    END IF;
    IF v_limits THEN
        PERFORM carteiro.check_max_retries(NEW.max_retries);
    END IF;
    v_moves := NEW.next_retry_at IS DISTINCT FROM OLD.next_retry_at AND NOT v_cancels;
    IF v_moves AND NEW.status <> 'pending' THEN
        RAISE EXCEPTION 'e-mail % is %: next_retry_at can only be changed while it is pending', OLD.id, OLD.status
            USING ERRCODE = 'check_violation',
            HINT = 'Add WHERE status = ''pending''. To send a failed one again, also set status = ''pending''.';
    ELSIF v_moves AND NEW.next_retry_at IS NULL THEN
        RAISE EXCEPTION 'next_retry_at must be a time' USING ERRCODE = 'check_violation',
            HINT = 'Use now() to try at once, or status = ''cancelled'' to stop the retries.';
    END IF;
    SELECT w.is_claimed, w.is_sending INTO v_worker FROM carteiro.has_worker(OLD.id) AS w;
    IF v_moves AND NOT v_redrives AND v_worker.is_claimed THEN
        RETURN NULL; -- a row that a worker has is not counted as updated
    END IF;

    IF v_cancels THEN
        v_shown.next_retry_at := NULL;
        IF v_worker.is_sending THEN -- it may still be sent: the attempt decides
            v_shown := OLD;
            v_shown.max_retries := NEW.max_retries;
        END IF;
    ELSIF v_redrives OR v_moves THEN
        v_shown.next_retry_at := greatest(
            CASE WHEN v_moves THEN NEW.next_retry_at END, carteiro.moment(carteiro.now_ms())
        );
    END IF;
    IF v_redrives THEN
        v_shown.retries := 0;
        PERFORM carteiro.request_change(v_shown, 'redrive');
    END IF;
    IF v_limits THEN
        PERFORM carteiro.request_change(v_shown, 'limit', NEW.max_retries);
    END IF;
    IF v_moves THEN
        PERFORM carteiro.request_change(v_shown, 'reschedule', carteiro.in_ms(v_shown.next_retry_at));
    END IF;
    IF v_cancels THEN
        PERFORM carteiro.request_change(v_shown, 'cancel');
    END IF;
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER requested INSTEAD OF UPDATE ON carteiro.table_queue
FOR EACH ROW EXECUTE FUNCTION carteiro.update_email_queue();

-- Client roles have no right to DELETE, because it includes LOCK TABLE; Postgres reports the error.
CREATE OR REPLACE FUNCTION carteiro.delete_from_email_queue() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'email_queue: rows cannot be deleted, they are the record of what was sent'
        USING ERRCODE = 'check_violation',
        HINT = 'Set status = ''cancelled'' to stop a pending e-mail. carteiro erase deletes a recipient, and retention'
        ' deletes old e-mails.';
END
$$;
CREATE OR REPLACE TRIGGER refused INSTEAD OF DELETE ON carteiro.table_queue
FOR EACH ROW EXECUTE FUNCTION carteiro.delete_from_email_queue();

-- --- the functions -----------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION carteiro.enqueue_email(
    p_user_id uuid, p_template_type text, p_recipient_email text, p_payload jsonb
) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_id uuid := carteiro.new_id();
BEGIN
    PERFORM carteiro.put_row(v_id, p_user_id, p_template_type, p_recipient_email, p_payload, 3, 0);
    RETURN v_id;
END
$$;

-- Counts a failure of an attempt that the application made: pending again, later, or failed for good when that was the
-- last. False: it is unknown, finished, or a worker has it.
CREATE OR REPLACE FUNCTION carteiro.mark_email_failed(id uuid, reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_shown carteiro.table_queue;
BEGIN
    SELECT q.* INTO v_shown FROM carteiro.table_queue AS q WHERE q.id = mark_email_failed.id;
    IF v_shown.status IS DISTINCT FROM 'pending'
        OR (SELECT w.is_claimed FROM carteiro.has_worker(mark_email_failed.id) AS w)
    THEN
        RETURN false;
    END IF;
    v_shown.next_retry_at := NULL; -- set by the retry policy, when the change is applied
    v_shown.error_message := mark_email_failed.reason;
    IF v_shown.retries < v_shown.max_retries THEN
        v_shown.retries := v_shown.retries + 1;
    ELSE
        v_shown.status := 'failed';
    END IF;
    PERFORM carteiro.request_change(v_shown, 'fail', p_reason => mark_email_failed.reason);
    RETURN true;
END
$$;

-- Wakes the workers for the first n due rows, and returns these rows.
CREATE OR REPLACE FUNCTION carteiro.process_pending_emails_for_retry(n integer) RETURNS SETOF carteiro.table_queue
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT pg_notify(w.channel, '') FROM carteiro.wake_channel AS w;
    WITH due AS MATERIALIZED (
        SELECT t.id AS tenant, j.id
        FROM (
            SELECT t.id FROM carteiro.tenants AS t
            WHERE (SELECT carteiro.sees_all()) OR t.id = (SELECT carteiro.acting_tenant())
        ) AS t
        CROSS JOIN LATERAL (
            (
                SELECT r.id::uuid AS id, carteiro.due_of(r.rank) AS due_at
                FROM carteiro.ready AS r
                WHERE
                    r.tenant = t.id AND r.kind = 'email:send'
                    AND EXISTS (SELECT FROM carteiro.queue_rows AS q WHERE q.message_no = r.message_no)
                    AND NOT EXISTS (
                        SELECT FROM carteiro.entries AS e
                        WHERE e.message_no = r.message_no AND e.finished_at IS NOT NULL
                    )
                ORDER BY r.rank
                LIMIT greatest(n, 0)
            )
            UNION ALL
            (
                SELECT d.id::uuid, d.parked_until
                FROM carteiro.delayed AS d
                WHERE
                    d.tenant = t.id AND d.kind = 'email:send' AND d.parked_until <= carteiro.now_ms()
                    AND EXISTS (SELECT FROM carteiro.queue_rows AS q WHERE q.message_no = d.message_no)
                ORDER BY d.parked_until
                LIMIT greatest(n, 0)
            )
        ) AS j
        ORDER BY j.due_at
        LIMIT greatest(n, 0)
    ),
    told AS (
        INSERT INTO carteiro.notes (kind, tenant, wake_at)
        SELECT DISTINCT 'email:send', d.tenant, carteiro.now_ms() FROM due AS d
    )
    SELECT v.*
    FROM due AS d
    CROSS JOIN LATERAL (SELECT w.* FROM carteiro.table_queue AS w WHERE w.id = d.id OFFSET 0) AS v
    WHERE v.status = 'pending' AND v.next_retry_at <= carteiro.moment(carteiro.now_ms())
    ORDER BY v.next_retry_at;
END;

-- Lets a role of the database use the table queue and read its views, as this tenant only; it can use nothing else of
-- Carteiro. Rights to write are granted by column: a right on the whole view would allow LOCK TABLE on the view, and so
-- on the tables of the ledger.
CREATE OR REPLACE FUNCTION carteiro.client_role(p_role name, p_tenant text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_view name;
    v_columns text;
    v_setting text;
BEGIN
    IF NOT EXISTS (SELECT FROM carteiro.tenants AS t WHERE t.id = p_tenant) THEN
        RAISE EXCEPTION 'there is no tenant "%"', p_tenant
            USING ERRCODE = 'foreign_key_violation', HINT = 'Create it with carteiro tenant add.';
    END IF;
    IF to_regclass('carteiro.email_queue') IS NOT NULL THEN
        RAISE EXCEPTION 'email_queue is not in the schema public: the name was taken, or Carteiro may not create there'
            USING ERRCODE = 'duplicate_table', HINT = 'SELECT carteiro.show_table_queue() moves it, once that is possible.';
    END IF;
    EXECUTE format(
        'GRANT USAGE ON SCHEMA public TO %1$I;'
        'GRANT EXECUTE ON FUNCTION public.enqueue_email, public.mark_email_failed,'
        ' public.process_pending_emails_for_retry TO %1$I',
        p_role
    );
    FOREACH v_view IN ARRAY carteiro.public_views() LOOP
        CONTINUE WHEN to_regclass(format('carteiro.%I', v_view)) IS NOT NULL; -- the name in public belongs to somebody else
        EXECUTE format('REVOKE ALL ON public.%1$I FROM %2$I; GRANT SELECT ON public.%1$I TO %2$I', v_view, p_role);
    END LOOP;
    v_columns := (
        SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute AS a
        WHERE a.attrelid = 'public.email_queue'::regclass AND a.attnum > 0
    );
    EXECUTE format('GRANT INSERT (%1$s), UPDATE (%1$s) ON public.email_queue TO %2$I', v_columns, p_role);
    INSERT INTO carteiro.client_roles (role, tenant) VALUES (p_role, p_tenant)
    ON CONFLICT (role) DO UPDATE SET tenant = excluded.tenant;
    FOREACH v_setting IN ARRAY ARRAY['statement_timeout', 'idle_in_transaction_session_timeout'] LOOP
        BEGIN
            EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %I = %L', p_role, current_database(), v_setting, '30s');
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING 'a superuser must bound its transactions: ALTER ROLE % IN DATABASE % SET % = ''30s''',
                quote_ident(p_role), quote_ident(current_database()), v_setting;
        END;
    END LOOP;
    IF (SELECT r.rolconnlimit FROM pg_catalog.pg_roles AS r WHERE r.rolname = p_role) < 0 THEN
        BEGIN
            EXECUTE format('ALTER ROLE %I CONNECTION LIMIT 20', p_role);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING 'a superuser must bound its connections: ALTER ROLE % CONNECTION LIMIT 20', quote_ident(p_role);
        END;
    END IF;
END
$$;

-- The views that are moved to `public`, where possible.
CREATE OR REPLACE FUNCTION carteiro.public_views() RETURNS name[]
LANGUAGE sql IMMUTABLE
AS $$ SELECT '{email_queue, email_outbox, email_logs, email_events, recipients, dlq}'::name[] $$;

REVOKE ALL ON FUNCTION
carteiro.enqueue_email, carteiro.mark_email_failed, carteiro.process_pending_emails_for_retry FROM PUBLIC;

-- Moves these views and functions to another schema. A name that is taken or not allowed there is skipped.
CREATE OR REPLACE FUNCTION carteiro.move_table_queue(p_from name, p_to name) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_each text;
BEGIN
    FOR v_each IN
        SELECT format('VIEW %I.%I', p_from, v) FROM unnest(carteiro.public_views()) AS v
        UNION ALL
        SELECT format('FUNCTION %I.%I(%s)', p_from, f.name, f.takes)
        FROM (
            VALUES ('enqueue_email', 'uuid, text, text, jsonb'), ('mark_email_failed', 'uuid, text'),
            ('process_pending_emails_for_retry', 'integer')
        ) AS f (name, takes)
    LOOP
        BEGIN
            EXECUTE format('ALTER %s SET SCHEMA %I', v_each, p_to);
        EXCEPTION
            WHEN undefined_table OR undefined_function THEN
                NULL; -- it is there
            WHEN duplicate_table OR duplicate_function OR wrong_object_type OR insufficient_privilege OR invalid_schema_name
            THEN
                RAISE NOTICE '% stays where it is: %', v_each, SQLERRM;
        END;
    END LOOP;
END
$$;

-- Moves them into `public`, where users look for them. Carteiro also works where this is impossible; a later call moves
-- them once it is possible.
CREATE OR REPLACE FUNCTION carteiro.show_table_queue() RETURNS void
LANGUAGE sql
AS $$ SELECT carteiro.move_table_queue('carteiro', 'public') $$;

-- Moves them back into `carteiro`, before they are created again.
CREATE OR REPLACE FUNCTION carteiro.hide_table_queue() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF to_regclass('carteiro.email_queue') IS NULL AND NOT has_schema_privilege(to_regnamespace('public'), 'CREATE') THEN
        RAISE EXCEPTION 'the views in the schema public cannot be created again: GRANT CREATE ON SCHEMA public TO %',
            quote_ident(current_user) USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM carteiro.move_table_queue('public', 'carteiro');
END
$$;
