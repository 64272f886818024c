-- Views for people and their tools: the classic names, times as timestamps.

-- JSON text that can be taken apart here: what text cannot hold is shown as U+FFFD.
CREATE FUNCTION carteiro.readable(json_text text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT replace(json_text, '\u0000', '\ufffd')::json $$;

-- Which tenant a role of the database stands for. It stays when the tenant is erased: the role must not become another's.
CREATE TABLE carteiro.client_roles (
    role name PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL
);

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

-- Each shows a role its own tenant's rows. Two parts, so that each has a plan of its own: all tenants, or one.

CREATE VIEW carteiro.visible_messages WITH (security_barrier) AS
SELECT * FROM carteiro.messages WHERE (SELECT carteiro.sees_all())
UNION ALL
SELECT * FROM carteiro.messages
WHERE NOT (SELECT carteiro.sees_all()) AND tenant = (SELECT carteiro.acting_tenant());

CREATE VIEW carteiro.email_outbox WITH (security_barrier) AS
SELECT
    m.id, m.tenant AS companyId, e.state AS status, e.attempts,
    carteiro.readable(e.failure::text) ->> 'reason' AS lastError,
    carteiro.readable(c.content) ->> 'html' AS html, m.to_address AS "to", m.subject, m.priority,
    m.request_id AS requestId, carteiro.moment(m.created_at) AS enqueuedAt,
    carteiro.moment(e.finished_at) AS processedAt
FROM carteiro.visible_messages AS m
JOIN carteiro.entries AS e ON e.message_no = m.no
LEFT JOIN carteiro.contents AS c ON c.message_no = m.no
WHERE m.kind = 'email:send';

CREATE VIEW carteiro.email_logs WITH (security_barrier) AS
SELECT
    m.id AS outboxId, m.tenant AS companyId, m.recipient_id AS recipientId, m.to_address AS "to", m.subject,
    e.state AS status, e.provider_message_id AS sesMessageId,
    carteiro.readable(e.failure::text) ->> 'code' AS errorCode,
    carteiro.readable(e.failure::text) ->> 'reason' AS errorReason,
    e.attempts, e.duration_ms AS durationMs, m.request_id AS requestId,
    carteiro.moment(m.created_at) AS createdAt,
    CASE WHEN e.state = 'SENT' THEN carteiro.moment(e.finished_at) END AS sentAt,
    CASE WHEN e.state IN ('FAILED', 'EXPIRED') THEN carteiro.moment(e.finished_at) END AS failedAt
FROM carteiro.visible_messages AS m JOIN carteiro.entries AS e ON e.message_no = m.no
WHERE m.kind = 'email:send';

CREATE VIEW carteiro.email_events WITH (security_barrier) AS
SELECT v.id, m.id AS emailLogId, v.type, v.metadata, carteiro.moment(v.created_at) AS createdAt
FROM carteiro.visible_messages AS m JOIN carteiro.events AS v ON v.message_no = m.no;

CREATE VIEW carteiro.recipients WITH (security_barrier) AS
SELECT
    r.id, r.tenant AS companyId, r.external_id AS externalId, r.cpf_cnpj_hash AS cpfCnpjHash,
    r.razao_social AS razaoSocial, r.nome, r.email, carteiro.moment(r.created_at) AS createdAt,
    carteiro.moment(r.deleted_at) AS deletedAt
FROM (
    SELECT * FROM carteiro.recipient_records WHERE (SELECT carteiro.sees_all())
    UNION ALL
    SELECT * FROM carteiro.recipient_records
    WHERE NOT (SELECT carteiro.sees_all()) AND tenant = (SELECT carteiro.acting_tenant())
) AS r;

CREATE VIEW carteiro.dlq WITH (security_barrier) AS
SELECT
    d.message_id AS jobId, d.message_id AS outboxId, d.tenant AS companyId, c.content AS originalData,
    d.failed_attempts AS failedAttempts, carteiro.readable(d.failure::text) ->> 'reason' AS lastFailureReason,
    d.code AS lastFailureCode, carteiro.moment(d.failed_at) AS lastFailureTimestamp,
    carteiro.moment(d.enqueued_at) AS enqueuedAt, carteiro.moment(d.moved_at) AS movedToDLQAt,
    d.ttl_ms AS ttl, d.reason, d.category,
    carteiro.readable(d.failure::text) ->> 'original_code' AS originalCode
FROM (
    SELECT * FROM carteiro.dead_letters WHERE (SELECT carteiro.sees_all())
    UNION ALL
    SELECT * FROM carteiro.dead_letters
    WHERE NOT (SELECT carteiro.sees_all()) AND tenant = (SELECT carteiro.acting_tenant())
) AS d
LEFT JOIN carteiro.contents AS c ON c.message_no = d.message_no;
