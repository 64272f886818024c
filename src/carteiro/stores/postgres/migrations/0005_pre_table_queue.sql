-- The table queue: a way in for whoever speaks SQL (docs/how-to/enqueue-from-sql.md).
--
-- `email_queue` is a view over the ledger: a table would have to be written by every step of a worker. What is inserted
-- is accepted there and then, inside the caller's transaction. What is updated is noted, and done when that transaction
-- commits: rows of the ledger are locked for that moment alone, so that nobody waits for a transaction that is held open.

-- Which tenant a role of the database stands for. It stays when the tenant is erased: the role must not become another's.
CREATE TABLE carteiro.client_roles (
    role name PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL
);

-- What the ledger does not know of a row: whose it is to people, and how often it may fail. The worker reads the second
-- in the content, which begins with it.
CREATE TABLE carteiro.queue_rows (
    id uuid PRIMARY KEY,
    message_no bigint NOT NULL UNIQUE REFERENCES carteiro.messages (no) ON DELETE CASCADE,
    tenant text COLLATE "C" NOT NULL,
    user_id uuid,
    max_retries integer NOT NULL
);
CREATE INDEX queue_rows_of_tenant ON carteiro.queue_rows (tenant, message_no);

-- What is to be done at commit; a row lives no longer than its transaction.
CREATE TABLE carteiro.queue_changes (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_no bigint NOT NULL,
    what text NOT NULL,                   -- cancel, redrive, fail, reschedule, limit
    number bigint,                        -- of reschedule: when; of limit: how many
    reason text                           -- of fail
);

-- An id as all messages have it, a UUIDv7: it begins with the milliseconds since 1970. Of a random one the first six bytes
-- and the version are replaced.
CREATE FUNCTION carteiro.new_id() RETURNS uuid
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

-- --- who asks ----------------------------------------------------------------------------------

-- The role that is logged in, or that it has set: also inside functions that run with the rights of another.
CREATE FUNCTION carteiro.asking_role() RETURNS name
LANGUAGE sql STABLE
AS $$ SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END $$;

-- The tenant that Carteiro's own role says it acts for; nobody else is listened to.
CREATE FUNCTION carteiro.chosen_tenant() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT nullif(current_setting('carteiro.tenant', true), '')
    FROM pg_namespace AS n
    WHERE n.nspname = 'carteiro' AND pg_has_role(carteiro.asking_role(), n.nspowner, 'USAGE')
$$;

CREATE FUNCTION carteiro.acting_tenant() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        carteiro.chosen_tenant(),
        (SELECT r.tenant FROM carteiro.client_roles AS r WHERE r.role = carteiro.asking_role()),
        'default'
    )
$$;

-- Carteiro's own role sees all tenants, unless it has chosen one.
CREATE FUNCTION carteiro.sees_all() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT carteiro.chosen_tenant() IS NULL AND EXISTS (
        SELECT FROM pg_namespace AS n
        WHERE n.nspname = 'carteiro' AND pg_has_role(carteiro.asking_role(), n.nspowner, 'USAGE')
    )
$$;

-- Also for the owner, and so for all that runs with its rights: the view, the triggers, the functions.
ALTER TABLE carteiro.queue_rows ENABLE ROW LEVEL SECURITY;
ALTER TABLE carteiro.queue_rows FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON carteiro.queue_rows
USING ((SELECT carteiro.sees_all()) OR tenant = (SELECT carteiro.acting_tenant()));

-- --- what people see ---------------------------------------------------------------------------

-- Its rows come in two parts, so that each has a plan of its own; they ask once more whose the rows are, because the policy
-- does not bind a superuser. The outer join also keeps FOR UPDATE off: it would lock what workers write.
CREATE VIEW carteiro.email_queue WITH (security_barrier) AS
SELECT
    q.id, q.user_id, m.template_type, m.to_address AS recipient_email,
    carteiro.readable(c.content)::jsonb #> '{template,variables}' AS payload,
    CASE e.state
        WHEN 'SENT' THEN 'sent'
        WHEN 'CANCELLED' THEN 'cancelled'
        WHEN 'FAILED' THEN 'failed'
        WHEN 'EXPIRED' THEN 'failed'
        ELSE 'pending'
    END AS status,
    e.charged AS retries, q.max_retries,
    (
        SELECT carteiro.moment(max(v.created_at)) FROM carteiro.events AS v
        WHERE v.message_no = q.message_no AND v.type = 'SENT_ATTEMPT'
    ) AS last_attempt_at,
    CASE WHEN e.finished_at IS NULL THEN carteiro.moment(e.due_at) END AS next_retry_at,
    carteiro.readable(e.failure::text) ->> 'reason' AS error_message,
    e.provider_message_id AS resend_id, carteiro.moment(m.created_at) AS created_at
FROM (
    SELECT * FROM carteiro.queue_rows WHERE (SELECT carteiro.sees_all())
    UNION ALL
    SELECT * FROM carteiro.queue_rows
    WHERE NOT (SELECT carteiro.sees_all()) AND tenant = (SELECT carteiro.acting_tenant())
) AS q
JOIN carteiro.messages AS m ON m.no = q.message_no
JOIN carteiro.entries AS e ON e.message_no = q.message_no
LEFT JOIN carteiro.contents AS c ON c.message_no = q.message_no;

-- --- putting in --------------------------------------------------------------------------------

-- Accepts an e-mail of the tenant that asks, inside the caller's transaction. SQL cannot render: its content names the
-- template and the words, and the worker puts them together.
CREATE FUNCTION carteiro.put_row(
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
    v_now bigint := carteiro.now_ms();
    v_why text;
BEGIN
    IF coalesce(p_template_type, '') !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$' THEN
        RAISE EXCEPTION 'template_type must be the name of a template: 1 to 100 letters, digits, "_", "-" or "."'
            USING ERRCODE = 'check_violation';
    END IF;
    IF v_to IS NULL OR length(v_to) > 320 OR v_to ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'recipient_email must be an e-mail address' USING ERRCODE = 'check_violation';
    END IF;
    IF jsonb_typeof(v_payload) <> 'object' THEN
        RAISE EXCEPTION 'payload must be a JSON object: the words of the template, by name'
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
    SELECT a.o_why INTO v_why FROM carteiro.accept(
        ARRAY[p_id::text], ARRAY[v_tenant], ARRAY['email:send'], ARRAY[true], ARRAY['at_least_once'], ARRAY[5],
        ARRAY[c_ttl_ms], ARRAY[v_request], ARRAY[NULL::text], ARRAY[NULL::text], ARRAY[v_to], ARRAY[NULL::text],
        ARRAY[p_template_type], ARRAY[NULL::text], ARRAY[greatest(v_now, p_due_at)], ARRAY[v_content],
        ARRAY[1], ARRAY['ENQUEUED'], ARRAY[json_build_object('requestId', v_request)], ARRAY[v_now],
        '{}', '{}', v_now
    ) AS a;
    CASE v_why
        WHEN 'known' THEN
            RAISE EXCEPTION 'there is an e-mail with the id % already', p_id USING ERRCODE = 'unique_violation';
        WHEN 'disabled' THEN
            RAISE EXCEPTION 'tenant "%" is disabled', v_tenant USING ERRCODE = 'insufficient_privilege';
        WHEN 'unknown' THEN
            RAISE EXCEPTION 'there is no tenant "%"', v_tenant
                USING ERRCODE = 'foreign_key_violation', HINT = 'carteiro tenant add makes one.';
        ELSE
            INSERT INTO carteiro.queue_rows (id, message_no, tenant, user_id, max_retries)
            SELECT p_id, m.no, v_tenant, p_user_id, p_max_retries FROM carteiro.messages AS m WHERE m.id = p_id::text;
    END CASE;
END
$$;

-- A moment in milliseconds since 1970; nothing is due after 2199.
CREATE FUNCTION carteiro.in_ms(p_at timestamptz) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF p_at >= '2200-01-01Z'::timestamptz THEN
        RAISE EXCEPTION 'next_retry_at must be before 2200' USING ERRCODE = 'check_violation';
    END IF;
    RETURN floor(extract(epoch FROM greatest(p_at, to_timestamp(0))) * 1000);
END
$$;

CREATE FUNCTION carteiro.check_max_retries(p_max_retries integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF p_max_retries IS NULL OR p_max_retries NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'max_retries must be 1 to 100' USING ERRCODE = 'check_violation';
    END IF;
END
$$;

CREATE FUNCTION carteiro.insert_into_email_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF coalesce(NEW.status, 'pending') <> 'pending' OR coalesce(NEW.retries, 0) <> 0
        OR num_nonnulls(NEW.last_attempt_at, NEW.error_message, NEW.resend_id, NEW.created_at) > 0
    THEN
        RAISE EXCEPTION 'a new row of email_queue is pending, and was not tried yet'
            USING ERRCODE = 'check_violation',
            HINT = 'Insert user_id, template_type, recipient_email, payload, and if you like id, max_retries, next_retry_at.';
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
CREATE TRIGGER accepted INSTEAD OF INSERT ON carteiro.email_queue
FOR EACH ROW EXECUTE FUNCTION carteiro.insert_into_email_queue();

-- --- changing ----------------------------------------------------------------------------------

-- Notes what is to be done at commit. False: a worker has the e-mail, and this is not to be done meanwhile.
CREATE FUNCTION carteiro.change_row(
    p_id uuid, p_what text, p_number bigint DEFAULT NULL, p_reason text DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_no bigint := (SELECT q.message_no FROM carteiro.queue_rows AS q WHERE q.id = p_id);
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'email_queue is changed in READ COMMITTED transactions alone'
            USING ERRCODE = 'feature_not_supported', HINT = 'Inserts work in any.';
    END IF;
    IF p_what IN ('fail', 'reschedule') AND carteiro.has_worker(v_no) THEN
        RETURN false;
    END IF;
    INSERT INTO carteiro.queue_changes (message_no, what, number, reason) VALUES (v_no, p_what, p_number, p_reason);
    RETURN true;
END
$$;

CREATE FUNCTION carteiro.has_worker(p_no bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT
        EXISTS (SELECT FROM carteiro.leased AS l WHERE l.message_no = p_no)
        OR EXISTS (SELECT FROM carteiro.entries AS e WHERE e.message_no = p_no AND e.state = 'SENT_ATTEMPT')
$$;

CREATE FUNCTION carteiro.update_email_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_done boolean := true;
BEGIN
    IF (
        NEW.id, NEW.user_id, NEW.template_type, NEW.recipient_email, NEW.payload, NEW.retries, NEW.last_attempt_at,
        NEW.error_message, NEW.resend_id, NEW.created_at
    ) IS DISTINCT FROM (
        OLD.id, OLD.user_id, OLD.template_type, OLD.recipient_email, OLD.payload, OLD.retries, OLD.last_attempt_at,
        OLD.error_message, OLD.resend_id, OLD.created_at
    ) THEN
        RAISE EXCEPTION 'of a row of email_queue only status, max_retries and next_retry_at can be changed'
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status IS DISTINCT FROM OLD.status THEN
        CASE NEW.status
            WHEN 'cancelled' THEN
                IF OLD.status <> 'pending' THEN
                    RAISE EXCEPTION 'e-mail % is %: only a pending one can be cancelled', OLD.id, OLD.status
                        USING ERRCODE = 'check_violation';
                END IF;
                v_done := carteiro.change_row(OLD.id, 'cancel');
            WHEN 'pending' THEN
                IF OLD.status <> 'failed' THEN
                    RAISE EXCEPTION 'e-mail % is %: only a failed one can be made pending again', OLD.id, OLD.status
                        USING ERRCODE = 'check_violation', HINT = 'Insert another one.';
                ELSIF OLD.payload IS NULL THEN
                    RAISE EXCEPTION 'the content of e-mail % is past its retention', OLD.id
                        USING ERRCODE = 'check_violation', HINT = 'Insert another one.';
                END IF;
                v_done := carteiro.change_row(OLD.id, 'redrive');
            ELSE
                RAISE EXCEPTION 'status can be set to cancelled or pending alone: what is sent or failed, workers say'
                    USING ERRCODE = 'check_violation', HINT = 'mark_email_failed counts a failure.';
        END CASE;
    END IF;
    IF NEW.max_retries IS DISTINCT FROM OLD.max_retries THEN
        PERFORM carteiro.check_max_retries(NEW.max_retries);
        v_done := v_done AND carteiro.change_row(OLD.id, 'limit', NEW.max_retries);
    END IF;
    IF NEW.next_retry_at IS DISTINCT FROM OLD.next_retry_at AND NEW.status <> 'cancelled' THEN
        IF NEW.status <> 'pending' OR NEW.next_retry_at IS NULL THEN
            RAISE EXCEPTION 'next_retry_at is a time, of a pending e-mail' USING ERRCODE = 'check_violation';
        END IF;
        v_done := v_done AND carteiro.change_row(OLD.id, 'reschedule', carteiro.in_ms(NEW.next_retry_at));
    END IF;
    RETURN CASE WHEN v_done THEN NEW END; -- a row that a worker has is not counted as updated
END
$$;
CREATE TRIGGER noted INSTEAD OF UPDATE ON carteiro.email_queue
FOR EACH ROW EXECUTE FUNCTION carteiro.update_email_queue();

-- Takes the job of a message from where it lies; false if it has none. The caller holds the ring's lock.
CREATE FUNCTION carteiro.take_job(m carteiro.messages, p_due_at bigint) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM carteiro.delayed WHERE message_no = m.no;
    IF FOUND THEN
        RETURN true;
    END IF;
    DELETE FROM carteiro.leased WHERE message_no = m.no;
    IF FOUND THEN
        RETURN true;
    END IF;
    DELETE FROM carteiro.ready
    WHERE tenant = m.tenant AND kind = m.kind AND rank = carteiro.rank(m.priority, p_due_at) AND id = m.id;
    RETURN FOUND;
END
$$;

-- Does at commit what was noted, by the rules of policy/lifecycle.py: what the message became meanwhile counts.
CREATE FUNCTION carteiro.apply_queue_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    c_far CONSTANT bigint := 4611686018427387904;
    c_letter_ttl_ms CONSTANT bigint := 604800000;
    c_waits CONSTANT bigint[] := '{60000, 300000, 900000}'; -- the preset `transactional`
    v_now bigint := carteiro.now_ms();
    m carteiro.messages;
    e carteiro.entries;
    v_most integer;
    v_due bigint;
    v_had_job boolean;
    v_reason text;
    v_ended_by text;
    v_state text;
    v_failure json;
    v_told jsonb;
BEGIN
    DELETE FROM carteiro.queue_changes WHERE no = NEW.no;
    PERFORM pg_notify('carteiro', ''); -- and with it the transaction cannot be prepared, to hold the ring for nobody
    IF NEW.what <> 'limit' THEN
        -- Jobs are taken from where they wait. Who has constraints checked at once holds the ring from here on: not for long.
        PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
        PERFORM carteiro.lock_ring();
    END IF;
    SELECT * INTO e FROM carteiro.entries AS n WHERE n.message_no = NEW.message_no FOR UPDATE;
    SELECT * INTO m FROM carteiro.messages AS n WHERE n.no = NEW.message_no;
    SELECT q.max_retries INTO v_most FROM carteiro.queue_rows AS q WHERE q.message_no = NEW.message_no;
    IF e.message_no IS NULL THEN
        RETURN NULL; -- erased meanwhile
    ELSIF v_most IS NULL THEN
        RAISE EXCEPTION 'email_queue was changed by another role, or for another tenant, than it is committed by'
            USING ERRCODE = 'insufficient_privilege';
    END IF;

    CASE NEW.what
    WHEN 'limit' THEN
        UPDATE carteiro.queue_rows SET max_retries = NEW.number WHERE message_no = m.no;
        UPDATE carteiro.contents
        SET content = regexp_replace(content, '^\{"maxRetries":\d+', '{"maxRetries":' || NEW.number)
        WHERE message_no = m.no;
        RETURN NULL;

    WHEN 'cancel' THEN
        IF e.finished_at IS NOT NULL OR e.cancel_requested_at IS NOT NULL THEN
            RETURN NULL;
        ELSIF e.state = 'SENT_ATTEMPT' THEN
            UPDATE carteiro.entries SET version = version + 1, cancel_requested_at = v_now WHERE message_no = m.no;
            INSERT INTO carteiro.events (message_no, type, metadata, created_at)
            VALUES (m.no, 'CANCEL_REQUESTED', '{}', v_now);
            RETURN NULL;
        END IF;
        v_had_job := carteiro.take_job(m, e.due_at);
        UPDATE carteiro.entries SET version = version + 1, state = 'CANCELLED', finished_at = v_now
        WHERE message_no = m.no;
        INSERT INTO carteiro.events (message_no, type, metadata, created_at) VALUES (m.no, 'CANCELLED', '{}', v_now);
        IF e.round > 1 THEN
            DELETE FROM carteiro.dead_letters WHERE message_id = m.id;
        END IF;

    WHEN 'redrive' THEN
        IF e.state NOT IN ('FAILED', 'EXPIRED')
            OR NOT EXISTS (SELECT FROM carteiro.contents AS c WHERE c.message_no = m.no)
        THEN
            RETURN NULL;
        END IF;
        v_had_job := carteiro.take_job(m, e.due_at);
        v_due := v_now;
        UPDATE carteiro.entries
        SET version = version + 1, state = 'ENQUEUED', round = round + 1, charged = 0, in_doubt = 0, due_at = v_due,
            expires_at = v_due + m.ttl_ms, cancel_requested_at = NULL, evidence = NULL, finished_at = NULL
        WHERE message_no = m.no;
        INSERT INTO carteiro.events (message_no, type, metadata, created_at)
        VALUES (
            m.no, 'ENQUEUED',
            json_build_object('round', e.round + 1, 'redrivenBy', 'role ' || carteiro.asking_role()), v_now
        );
        UPDATE carteiro.dead_letters SET redriven_at = v_now WHERE message_id = m.id;

    WHEN 'reschedule' THEN
        IF e.finished_at IS NOT NULL OR carteiro.has_worker(m.no) THEN
            RETURN NULL;
        END IF;
        v_had_job := carteiro.take_job(m, e.due_at);
        v_due := greatest(NEW.number, v_now);
        UPDATE carteiro.entries
        SET version = version + 1, due_at = v_due, expires_at = greatest(expires_at, v_due + m.ttl_ms)
        WHERE message_no = m.no;

    WHEN 'fail' THEN
        IF e.finished_at IS NOT NULL OR carteiro.has_worker(m.no) THEN
            RETURN NULL;
        END IF;
        v_had_job := carteiro.take_job(m, e.due_at);
        v_due := v_now + c_waits[least(e.charged + 1, 3)];
        v_reason := CASE
            WHEN e.charged + 1 >= v_most THEN 'max_attempts_exceeded'
            WHEN v_due >= e.expires_at THEN 'expired'
        END;
        v_state := CASE v_reason
            WHEN 'max_attempts_exceeded' THEN 'FAILED' WHEN 'expired' THEN 'EXPIRED' ELSE 'RETRY_SCHEDULED'
        END;
        v_ended_by := v_reason;
        IF v_reason IS NOT NULL AND e.in_doubt > 0 THEN
            v_reason := 'in_doubt'; -- whatever ended it: it may have been handed over
        END IF;
        v_failure := json_build_object(
            'code', 'MARKED_FAILED', 'category', 'TRANSIENT_ERROR', 'retryable', true, 'scope', 'message',
            'reason', coalesce(nullif(left(NEW.reason, 500), ''), 'No reason was given'),
            'rule', 'sql.mark_email_failed', 'original_code', NULL
        );
        v_told := jsonb_build_object(
            'errorCode', 'MARKED_FAILED', 'errorCategory', 'TRANSIENT_ERROR', 'originalCode', NULL,
            'errorMessage', v_failure ->> 'reason', 'scope', 'message', 'rule', v_failure ->> 'rule'
        );
        UPDATE carteiro.entries
        SET version = version + 1, attempts = attempts + 1, charged = charged + 1, failure = v_failure,
            state = v_state,
            due_at = CASE WHEN v_reason IS NULL THEN v_due ELSE due_at END,
            finished_at = CASE WHEN v_reason IS NOT NULL THEN v_now END
        WHERE message_no = m.no;
        -- The attempt was the application's own.
        INSERT INTO carteiro.events (message_no, type, metadata, created_at)
        VALUES
        (m.no, 'RECEIVED', '{}', v_now),
        (m.no, 'SENT_ATTEMPT', json_build_object('attempt', e.attempts + 1, 'provider', 'application'), v_now),
        (
            m.no, v_state,
            (v_told || CASE
                WHEN v_reason IS NULL THEN jsonb_build_object(
                    'willRetry', true, 'nextAttemptNumber', e.attempts + 2, 'backoffDelay', v_due - v_now)
                WHEN v_reason = v_ended_by THEN jsonb_build_object('willRetry', false, 'reason', v_reason)
                ELSE jsonb_build_object('willRetry', false, 'reason', v_reason, 'endedBy', v_ended_by)
            END)::json, v_now
        );
        IF v_reason IS NOT NULL THEN
            v_due := NULL;
            INSERT INTO carteiro.dead_letters (
                message_id, message_no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at,
                enqueued_at, moved_at, ttl_ms
            )
            VALUES (
                m.id, m.no, m.tenant, m.kind, v_reason, 'MARKED_FAILED', 'TRANSIENT_ERROR', v_failure, e.charged + 1,
                v_now, m.created_at, v_now, c_letter_ttl_ms
            )
            ON CONFLICT (message_id) DO UPDATE
            SET reason = excluded.reason, code = excluded.code, category = excluded.category,
                failure = excluded.failure, failed_attempts = excluded.failed_attempts,
                failed_at = excluded.failed_at, moved_at = excluded.moved_at, ttl_ms = excluded.ttl_ms,
                redriven_at = NULL;
        END IF;
    END CASE;

    IF v_due IS NOT NULL THEN
        INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until)
        VALUES (m.no, m.id, m.kind, m.tenant, carteiro.rank(m.priority, v_due), v_due);
    END IF;
    INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
    VALUES (m.kind, m.tenant, (v_due IS NOT NULL)::integer - v_had_job::integer, coalesce(v_due, c_far));
    INSERT INTO carteiro.notes (kind, tenant, wake_at) -- one that a worker had just claimed held a slot
    SELECT '', t.id, v_now FROM carteiro.tenants AS t WHERE t.id = m.tenant AND t.cap IS NOT NULL;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER done_at_commit AFTER INSERT ON carteiro.queue_changes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION carteiro.apply_queue_change();

-- --- the functions -----------------------------------------------------------------------------

CREATE FUNCTION carteiro.enqueue_email(
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
CREATE FUNCTION carteiro.mark_email_failed(id uuid, reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_tenant text;
BEGIN
    SELECT q.tenant INTO v_tenant
    FROM carteiro.queue_rows AS q JOIN carteiro.entries AS e ON e.message_no = q.message_no
    WHERE q.id = mark_email_failed.id AND e.finished_at IS NULL;
    IF v_tenant IS NULL OR NOT (carteiro.sees_all() OR v_tenant = carteiro.acting_tenant()) THEN
        RETURN false;
    END IF;
    RETURN carteiro.change_row(mark_email_failed.id, 'fail', p_reason => mark_email_failed.reason);
END
$$;

-- Tells the workers to come for the first n due rows, and returns these.
CREATE FUNCTION carteiro.process_pending_emails_for_retry(n integer) RETURNS SETOF carteiro.email_queue
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT pg_notify('carteiro', '');
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
                    AND EXISTS (
                        SELECT FROM carteiro.entries AS e
                        WHERE e.message_no = r.message_no AND e.finished_at IS NULL
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
    CROSS JOIN LATERAL (SELECT w.* FROM carteiro.email_queue AS w WHERE w.id = d.id OFFSET 0) AS v
    ORDER BY v.next_retry_at;
END;

-- Lets a role of the database use the table queue, as this tenant and no other; nothing else of Carteiro is open to it.
CREATE FUNCTION carteiro.client_role(p_role name, p_tenant text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM carteiro.tenants AS t WHERE t.id = p_tenant) THEN
        RAISE EXCEPTION 'there is no tenant "%"', p_tenant
            USING ERRCODE = 'foreign_key_violation', HINT = 'carteiro tenant add makes one.';
    END IF;
    EXECUTE format(
        'GRANT USAGE ON SCHEMA public TO %1$I;'
        'GRANT SELECT, INSERT, UPDATE ON public.email_queue TO %1$I;'
        'GRANT EXECUTE ON FUNCTION public.enqueue_email, public.mark_email_failed,'
        ' public.process_pending_emails_for_retry TO %1$I',
        p_role
    );
    INSERT INTO carteiro.client_roles (role, tenant) VALUES (p_role, p_tenant)
    ON CONFLICT (role) DO UPDATE SET tenant = excluded.tenant;
END
$$;

-- Out into `public`, where everybody looks for them; unless we may not, or there is an email_queue already: then
-- Carteiro works all the same, and `carteiro.show_table_queue()` does it once the way is free.
REVOKE ALL ON FUNCTION
carteiro.enqueue_email, carteiro.mark_email_failed, carteiro.process_pending_emails_for_retry FROM PUBLIC;
CREATE FUNCTION carteiro.show_table_queue() RETURNS void
LANGUAGE sql
AS $$
    ALTER VIEW carteiro.email_queue SET SCHEMA public;
    ALTER FUNCTION carteiro.enqueue_email SET SCHEMA public;
    ALTER FUNCTION carteiro.mark_email_failed SET SCHEMA public;
    ALTER FUNCTION carteiro.process_pending_emails_for_retry SET SCHEMA public;
$$;
DO $$
BEGIN
    PERFORM carteiro.show_table_queue();
EXCEPTION WHEN duplicate_table OR duplicate_function OR insufficient_privilege OR invalid_schema_name THEN
    RAISE NOTICE 'email_queue stays in the schema carteiro: %', SQLERRM;
END
$$;
