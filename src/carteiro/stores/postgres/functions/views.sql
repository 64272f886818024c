-- Views for users and their tools: the classic names, times as timestamps.

-- The role that is logged in, or that it has set: also inside functions that run with the rights of another.
CREATE OR REPLACE FUNCTION carteiro.asking_role() RETURNS name
LANGUAGE sql STABLE
AS $$ SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END $$;

-- The tenant that Carteiro's own role has chosen to act for; other roles cannot choose.
CREATE OR REPLACE FUNCTION carteiro.chosen_tenant() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT nullif(current_setting('carteiro.tenant', true), '')
    FROM pg_namespace AS n
    WHERE n.nspname = 'carteiro' AND pg_has_role(carteiro.asking_role(), n.nspowner, 'USAGE')
$$;

-- NULL for a role that stands for no tenant, such as a member of a client role: it sees nothing.
CREATE OR REPLACE FUNCTION carteiro.acting_tenant() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        carteiro.chosen_tenant(),
        (SELECT r.tenant FROM carteiro.client_roles AS r WHERE r.role = carteiro.asking_role()),
        (
            SELECT 'default' FROM pg_namespace AS n
            WHERE n.nspname = 'carteiro' AND pg_has_role(carteiro.asking_role(), n.nspowner, 'USAGE')
        )
    )
$$;

-- Carteiro's own role sees all tenants, unless it has chosen one.
CREATE OR REPLACE FUNCTION carteiro.sees_all() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT carteiro.chosen_tenant() IS NULL AND EXISTS (
        SELECT FROM pg_namespace AS n
        WHERE n.nspname = 'carteiro' AND pg_has_role(carteiro.asking_role(), n.nspowner, 'USAGE')
    )
$$;

-- Each shows a role its own tenant's rows. Two parts, so that each has a plan of its own: all tenants, or one.
--
-- EXPLAIN ANALYZE shows a role the number of rows of each step of its query, and the planner may check a condition with
-- a leakproof operator early. So every table is filtered by the tenant itself, not only through a join; a
-- table without a tenant is read row by row, for rows that are known to be the tenant's (OFFSET 0: conditions stay
-- outside). The calling role is resolved before any row is read.

CREATE OR REPLACE VIEW carteiro.asking AS SELECT carteiro.sees_all() AS sees_all, carteiro.acting_tenant() AS tenant OFFSET 0;

CREATE OR REPLACE VIEW carteiro.visible_emails WITH (security_barrier) AS
SELECT r.*
FROM carteiro.asking AS a
CROSS JOIN LATERAL (
    SELECT
        m.no, m.id, m.tenant, m.recipient_id, m.to_address, m.subject, m.priority, m.request_id, m.created_at,
        coalesce(e.state, 'ENQUEUED') AS state, coalesce(e.attempts, 0) AS attempts, e.failure, e.provider_message_id,
        e.duration_ms, e.finished_at
    FROM carteiro.messages AS m LEFT JOIN carteiro.entries AS e ON e.message_no = m.no
    WHERE a.sees_all AND m.kind = 'email:send'
    UNION ALL
    SELECT
        m.no, m.id, m.tenant,
        m.recipient_id || '', -- its index covers all tenants
        m.to_address, m.subject, m.priority, m.request_id, m.created_at,
        coalesce(e.state, 'ENQUEUED'), coalesce(e.attempts, 0), e.failure, e.provider_message_id, e.duration_ms,
        e.finished_at
    FROM carteiro.messages AS m LEFT JOIN carteiro.entries AS e ON e.message_no = m.no AND e.tenant = a.tenant
    WHERE NOT a.sees_all AND m.kind = 'email:send' AND m.tenant = a.tenant
) AS r;

CREATE OR REPLACE VIEW carteiro.email_outbox WITH (security_barrier) AS
SELECT
    m.id, m.tenant AS companyId, m.state AS status, m.attempts,
    carteiro.readable(m.failure::text) ->> 'reason' AS lastError,
    carteiro.readable(c.content) ->> 'html' AS html, m.to_address AS "to", m.subject, m.priority,
    m.request_id AS requestId, carteiro.moment(m.created_at) AS enqueuedAt,
    carteiro.moment(m.finished_at) AS processedAt
FROM carteiro.visible_emails AS m
LEFT JOIN LATERAL (
    SELECT b.content FROM carteiro.messages AS b WHERE b.no = m.no OFFSET 0
) AS c ON true;

CREATE OR REPLACE VIEW carteiro.email_logs WITH (security_barrier) AS
SELECT
    m.id AS outboxId, m.tenant AS companyId, m.recipient_id AS recipientId, m.to_address AS "to", m.subject,
    m.state AS status, m.provider_message_id AS sesMessageId,
    carteiro.readable(m.failure::text) ->> 'code' AS errorCode,
    carteiro.readable(m.failure::text) ->> 'reason' AS errorReason,
    m.attempts, m.duration_ms AS durationMs, m.request_id AS requestId,
    carteiro.moment(m.created_at) AS createdAt,
    CASE WHEN m.state = 'SENT' THEN carteiro.moment(m.finished_at) END AS sentAt,
    CASE WHEN m.state IN ('FAILED', 'EXPIRED') THEN carteiro.moment(m.finished_at) END AS failedAt
FROM carteiro.visible_emails AS m;

-- Three parts: a tenant's e-mails and its tasks each have an index.
CREATE OR REPLACE VIEW carteiro.email_events WITH (security_barrier) AS
SELECT v.id, m.id AS emailLogId, v.type, v.metadata, carteiro.moment(v.created_at) AS createdAt
FROM carteiro.asking AS a
CROSS JOIN LATERAL (
    SELECT o.no, o.id FROM carteiro.messages AS o WHERE a.sees_all
    UNION ALL
    SELECT o.no, o.id FROM carteiro.messages AS o
    WHERE NOT a.sees_all AND o.kind = 'email:send' AND o.tenant = a.tenant
    UNION ALL
    SELECT o.no, o.id FROM carteiro.messages AS o
    WHERE NOT a.sees_all AND o.kind <> 'email:send' AND o.tenant = a.tenant
) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.timelines AS t WHERE t.message_no = m.no OFFSET 0) AS v;

CREATE OR REPLACE VIEW carteiro.recipients WITH (security_barrier) AS
SELECT
    r.id, r.tenant AS companyId, r.external_id AS externalId, r.cpf_cnpj_hash AS cpfCnpjHash,
    r.razao_social AS razaoSocial, r.nome, r.email, carteiro.moment(r.created_at) AS createdAt,
    carteiro.moment(r.deleted_at) AS deletedAt
FROM carteiro.asking AS a
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.recipient_records AS p WHERE a.sees_all
    UNION ALL
    SELECT * FROM carteiro.recipient_records AS p WHERE NOT a.sees_all AND p.tenant = a.tenant
) AS r;

CREATE OR REPLACE VIEW carteiro.dlq WITH (security_barrier) AS
SELECT
    d.message_id AS jobId, d.message_id AS outboxId, d.tenant AS companyId, c.content AS originalData,
    d.failed_attempts AS failedAttempts, carteiro.readable(d.failure::text) ->> 'reason' AS lastFailureReason,
    d.code AS lastFailureCode, carteiro.moment(d.failed_at) AS lastFailureTimestamp,
    carteiro.moment(d.enqueued_at) AS enqueuedAt, carteiro.moment(d.moved_at) AS movedToDLQAt,
    d.ttl_ms AS ttl, d.reason, d.category,
    carteiro.readable(d.failure::text) ->> 'original_code' AS originalCode
FROM carteiro.asking AS a
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.dead_letters AS l WHERE a.sees_all
    UNION ALL
    -- its indexes by code and reason cover all tenants
    (SELECT * FROM carteiro.dead_letters AS l WHERE NOT a.sees_all AND l.tenant = a.tenant OFFSET 0)
) AS d
LEFT JOIN LATERAL (
    SELECT b.content FROM carteiro.messages AS b WHERE b.no = d.message_no OFFSET 0
) AS c ON true;
