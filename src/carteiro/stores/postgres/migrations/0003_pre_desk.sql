-- Views for people and their tools: the classic names, times as timestamps.

-- JSON text that can be taken apart here: what text cannot hold is shown as U+FFFD.
CREATE FUNCTION carteiro.readable(json_text text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT replace(json_text, '\u0000', '\ufffd')::json $$;

CREATE VIEW carteiro.email_outbox AS
SELECT
    m.id, m.tenant AS "companyId", e.state AS status, e.attempts,
    carteiro.readable(e.failure::text) ->> 'reason' AS "lastError",
    carteiro.readable(c.content) ->> 'html' AS html, m.to_address AS "to", m.subject, m.priority,
    m.request_id AS "requestId", carteiro.moment(m.created_at) AS "enqueuedAt",
    carteiro.moment(e.finished_at) AS "processedAt"
FROM carteiro.messages AS m
JOIN carteiro.entries AS e ON e.message_no = m.no
LEFT JOIN carteiro.contents AS c ON c.message_no = m.no
WHERE m.kind = 'email:send';

CREATE VIEW carteiro.email_logs AS
SELECT
    m.id AS "outboxId", m.tenant AS "companyId", m.recipient_id AS "recipientId", m.to_address AS "to", m.subject,
    e.state AS status, e.provider_message_id AS "sesMessageId",
    carteiro.readable(e.failure::text) ->> 'code' AS "errorCode",
    carteiro.readable(e.failure::text) ->> 'reason' AS "errorReason",
    e.attempts, e.duration_ms AS "durationMs", m.request_id AS "requestId",
    carteiro.moment(m.created_at) AS "createdAt",
    CASE WHEN e.state = 'SENT' THEN carteiro.moment(e.finished_at) END AS "sentAt",
    CASE WHEN e.state IN ('FAILED', 'EXPIRED') THEN carteiro.moment(e.finished_at) END AS "failedAt"
FROM carteiro.messages AS m JOIN carteiro.entries AS e ON e.message_no = m.no
WHERE m.kind = 'email:send';

CREATE VIEW carteiro.email_events AS
SELECT v.id, m.id AS "emailLogId", v.type, v.metadata, carteiro.moment(v.created_at) AS "createdAt"
FROM carteiro.events AS v JOIN carteiro.messages AS m ON m.no = v.message_no;

CREATE VIEW carteiro.recipients AS
SELECT
    id, tenant AS "companyId", external_id AS "externalId", cpf_cnpj_hash AS "cpfCnpjHash",
    razao_social AS "razaoSocial", nome, email, carteiro.moment(created_at) AS "createdAt",
    carteiro.moment(deleted_at) AS "deletedAt"
FROM carteiro.recipient_records;

CREATE VIEW carteiro.dlq AS
SELECT
    d.message_id AS "jobId", d.message_id AS "outboxId", d.tenant AS "companyId", c.content AS "originalData",
    d.failed_attempts AS "failedAttempts", carteiro.readable(d.failure::text) ->> 'reason' AS "lastFailureReason",
    d.code AS "lastFailureCode", carteiro.moment(d.failed_at) AS "lastFailureTimestamp",
    carteiro.moment(d.enqueued_at) AS "enqueuedAt", carteiro.moment(d.moved_at) AS "movedToDLQAt",
    d.ttl_ms AS ttl, d.reason, d.category,
    carteiro.readable(d.failure::text) ->> 'original_code' AS "originalCode"
FROM carteiro.dead_letters AS d LEFT JOIN carteiro.contents AS c ON c.message_no = d.message_no;
