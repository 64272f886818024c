-- A file as version 0.1.0 left it, in every state in which a message can rest (schema 1).
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE contents (
    message_no INTEGER PRIMARY KEY,
    content TEXT NOT NULL
) STRICT;
INSERT INTO "contents" VALUES(1,'{"to":"sent@example.test","subject":"Mail sent","html":"<p>Ola</p>","recipient":{"email":"sent@example.test","externalId":"client-1"},"externalId":"order-1"}');
INSERT INTO "contents" VALUES(2,'{"to":"dead@example.test","subject":"Mail dead","html":"<p>Ola</p>"}');
INSERT INTO "contents" VALUES(3,'{"to":"cancelled@example.test","subject":"Mail cancelled","html":"<p>Ola</p>"}');
INSERT INTO "contents" VALUES(4,'{"to":"retried@example.test","subject":"Mail retried","html":"<p>Ola</p>"}');
INSERT INTO "contents" VALUES(5,'{"to":"declared@example.test","subject":"Mail declared","html":"<p>Ola</p>"}');
INSERT INTO "contents" VALUES(6,'{"to":"claimed@example.test","subject":"Mail claimed","html":"<p>Ola</p>"}');
INSERT INTO "contents" VALUES(7,'{"to":"waiting@example.test","subject":"Mail waiting","html":"<p>Ola</p>"}');
INSERT INTO "contents" VALUES(8,'{"to":"scheduled@example.test","subject":"Mail scheduled","html":"<p>Ola</p>","scheduledAt":"2027-01-15T09:00:00Z"}');
CREATE TABLE dead_letters (
    message_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    failure TEXT NOT NULL,
    failed_attempts INTEGER NOT NULL,
    failed_at INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    moved_at INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    redriven_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "dead_letters" VALUES('018cc251-f400-7000-8000-000000000002','acme','email:send','permanent_error','{"code":"550","category":"PERMANENT_ERROR","retryable":false,"scope":"destination","reason":"Service not available, try later","rule":"smtp.421","original_code":"421 4.3.2"}',1,1800000000000,1800000000000,1800000000000,604800000,NULL);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO "events" VALUES(1,'018cc251-f400-7000-8000-000000000001','ENQUEUED','{"requestId":"request-sent"}',1800000000000);
INSERT INTO "events" VALUES(2,'018cc251-f400-7000-8000-000000000001','RECEIVED','{}',1800000000000);
INSERT INTO "events" VALUES(3,'018cc251-f400-7000-8000-000000000001','VALIDATED','{"validations":["INTEGRITY"]}',1800000000000);
INSERT INTO "events" VALUES(4,'018cc251-f400-7000-8000-000000000001','SENT_ATTEMPT','{"attempt":1,"provider":"sandbox"}',1800000000000);
INSERT INTO "events" VALUES(5,'018cc251-f400-7000-8000-000000000001','SENT','{"sesMessageId":"provider-1","provider":"sandbox","durationMs":0,"attempt":1}',1800000000000);
INSERT INTO "events" VALUES(6,'018cc251-f400-7000-8000-000000000002','ENQUEUED','{"requestId":"request-dead"}',1800000000000);
INSERT INTO "events" VALUES(7,'018cc251-f400-7000-8000-000000000002','RECEIVED','{}',1800000000000);
INSERT INTO "events" VALUES(8,'018cc251-f400-7000-8000-000000000002','VALIDATED','{"validations":["INTEGRITY"]}',1800000000000);
INSERT INTO "events" VALUES(9,'018cc251-f400-7000-8000-000000000002','SENT_ATTEMPT','{"attempt":1,"provider":"sandbox"}',1800000000000);
INSERT INTO "events" VALUES(10,'018cc251-f400-7000-8000-000000000002','FAILED','{"errorCode":"550","errorCategory":"PERMANENT_ERROR","originalCode":"421 4.3.2","errorMessage":"Service not available, try later","willRetry":false,"reason":"permanent_error"}',1800000000000);
INSERT INTO "events" VALUES(11,'018cc251-f400-7000-8000-000000000003','ENQUEUED','{"requestId":"request-cancelled"}',1800000000000);
INSERT INTO "events" VALUES(12,'018cc251-f400-7000-8000-000000000003','CANCELLED','{}',1800000000000);
INSERT INTO "events" VALUES(13,'018cc251-f400-7000-8000-000000000004','ENQUEUED','{"requestId":"request-retried"}',1800000000000);
INSERT INTO "events" VALUES(14,'018cc251-f400-7000-8000-000000000004','RECEIVED','{}',1800000000000);
INSERT INTO "events" VALUES(15,'018cc251-f400-7000-8000-000000000004','VALIDATED','{"validations":["INTEGRITY"]}',1800000000000);
INSERT INTO "events" VALUES(16,'018cc251-f400-7000-8000-000000000004','SENT_ATTEMPT','{"attempt":1,"provider":"sandbox"}',1800000000000);
INSERT INTO "events" VALUES(17,'018cc251-f400-7000-8000-000000000004','RETRY_SCHEDULED','{"errorCode":"421","errorCategory":"TRANSIENT_ERROR","originalCode":"421 4.3.2","willRetry":true,"nextAttemptNumber":2,"backoffDelay":60000}',1800000000000);
INSERT INTO "events" VALUES(18,'018cc251-f400-7000-8000-000000000005','ENQUEUED','{"requestId":"request-declared"}',1800000000000);
INSERT INTO "events" VALUES(19,'018cc251-f400-7000-8000-000000000005','RECEIVED','{}',1800000000000);
INSERT INTO "events" VALUES(20,'018cc251-f400-7000-8000-000000000005','VALIDATED','{"validations":["INTEGRITY"]}',1800000000000);
INSERT INTO "events" VALUES(21,'018cc251-f400-7000-8000-000000000005','SENT_ATTEMPT','{"attempt":1,"provider":"sandbox"}',1800000000000);
INSERT INTO "events" VALUES(22,'018cc251-f400-7000-8000-000000000006','ENQUEUED','{"requestId":"request-claimed"}',1800000000000);
INSERT INTO "events" VALUES(23,'018cc251-f400-7000-8000-000000000007','ENQUEUED','{"requestId":"request-waiting"}',1800000000000);
INSERT INTO "events" VALUES(24,'018cc251-f400-7000-8000-000000000008','ENQUEUED','{"requestId":"request-scheduled"}',1800000000000);
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    to_address TEXT NOT NULL,
    subject TEXT NOT NULL,
    content TEXT NOT NULL,
    provider_message_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE leads (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    declares INTEGER NOT NULL,
    delivery TEXT NOT NULL,
    priority INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    external_id TEXT,
    recipient_id TEXT,
    to_address TEXT,
    subject TEXT,
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,  -- provider calls
    charged INTEGER NOT NULL DEFAULT 0,   -- failures of this round that count against the policy
    in_doubt INTEGER NOT NULL DEFAULT 0,  -- unknown outcomes of this round
    round INTEGER NOT NULL DEFAULT 1,
    revision INTEGER NOT NULL DEFAULT 1,
    holder TEXT,                          -- the claim that declared or settled last
    held_until INTEGER,                   -- set while an attempt is declared and not settled
    cancel_requested_at INTEGER,
    evidence TEXT,                        -- [claim, provider, provider id] of a late success
    provider TEXT,
    provider_message_id TEXT,
    failure TEXT,                         -- the last one, as JSON
    duration_ms INTEGER,
    finished_at INTEGER                   -- not set: it is unfinished, and has a job
) STRICT;
INSERT INTO "messages" VALUES(1,'018cc251-f400-7000-8000-000000000001','acme','email:send',1,'at_least_once',5,86400000,'request-sent','order-1','01a1e190-3d08-72e0-894e-d004d7ceccff','sent@example.test','Mail sent',1800000000000,'SENT',1800000000000,1800086400000,1,0,0,1,1,'01900000-0000-7000-9000-000000000001',NULL,NULL,NULL,'sandbox','provider-1',NULL,0,1800000000000);
INSERT INTO "messages" VALUES(2,'018cc251-f400-7000-8000-000000000002','acme','email:send',1,'at_least_once',5,86400000,'request-dead',NULL,NULL,'dead@example.test','Mail dead',1800000000000,'FAILED',1800000000000,1800086400000,1,1,0,1,1,'01900000-0000-7000-9000-000000000002',NULL,NULL,NULL,'sandbox',NULL,'{"code":"550","category":"PERMANENT_ERROR","retryable":false,"scope":"destination","reason":"Service not available, try later","rule":"smtp.421","original_code":"421 4.3.2"}',0,1800000000000);
INSERT INTO "messages" VALUES(3,'018cc251-f400-7000-8000-000000000003','acme','email:send',1,'at_least_once',5,86400000,'request-cancelled',NULL,NULL,'cancelled@example.test','Mail cancelled',1800000000000,'CANCELLED',1800000000000,1800086400000,0,0,0,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1800000000000);
INSERT INTO "messages" VALUES(4,'018cc251-f400-7000-8000-000000000004','acme','email:send',1,'at_least_once',5,86400000,'request-retried',NULL,NULL,'retried@example.test','Mail retried',1800000000000,'RETRY_SCHEDULED',1800000060000,1800086400000,1,1,0,1,1,'01900000-0000-7000-9000-000000000003',NULL,NULL,NULL,'sandbox',NULL,'{"code":"421","category":"TRANSIENT_ERROR","retryable":true,"scope":"destination","reason":"Service not available, try later","rule":"smtp.421","original_code":"421 4.3.2"}',0,NULL);
INSERT INTO "messages" VALUES(5,'018cc251-f400-7000-8000-000000000005','acme','email:send',1,'at_least_once',5,86400000,'request-declared',NULL,NULL,'declared@example.test','Mail declared',1800000000000,'SENT_ATTEMPT',1800000000000,1800086400000,1,0,0,1,1,'01900000-0000-7000-9000-000000000004',1800000040000,NULL,NULL,'sandbox',NULL,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(6,'018cc251-f400-7000-8000-000000000006','acme','email:send',1,'at_least_once',5,86400000,'request-claimed',NULL,NULL,'claimed@example.test','Mail claimed',1800000000000,'ENQUEUED',1800000000000,1800086400000,0,0,0,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(7,'018cc251-f400-7000-8000-000000000007','acme','email:send',1,'at_least_once',5,86400000,'request-waiting',NULL,NULL,'waiting@example.test','Mail waiting',1800000000000,'ENQUEUED',1800000000000,1800086400000,0,0,0,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(8,'018cc251-f400-7000-8000-000000000008','acme','email:send',1,'at_least_once',5,86400000,'request-scheduled',NULL,NULL,'scheduled@example.test','Mail scheduled',1800000000000,'ENQUEUED',1800003600000,1800090000000,0,0,0,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE overrides (
    name TEXT PRIMARY KEY,
    setting TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE parked (
    id TEXT PRIMARY KEY,
    message_no INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    parked_until INTEGER NOT NULL,
    is_claimed INTEGER NOT NULL DEFAULT 0,
    claim_id TEXT,
    claims INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO "parked" VALUES('018cc251-f400-7000-8000-000000000004',4,'email:send','acme',5,1800000060000,1800000060000,0,NULL,0);
INSERT INTO "parked" VALUES('018cc251-f400-7000-8000-000000000005',5,'email:send','acme',5,1800000000000,1800000040000,1,'01900000-0000-7000-9000-000000000004',1);
INSERT INTO "parked" VALUES('018cc251-f400-7000-8000-000000000006',6,'email:send','acme',5,1800000000000,1800000030000,1,'01900000-0000-7000-9000-000000000005',1);
INSERT INTO "parked" VALUES('018cc251-f400-7000-8000-000000000008',8,'email:send','acme',5,1800003600000,1800003600000,0,NULL,0);
CREATE TABLE ready (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    priority INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    message_no INTEGER NOT NULL,
    claims INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, kind, priority, due_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "ready" VALUES('acme','email:send',5,1800000000000,'018cc251-f400-7000-8000-000000000007',7,0);
CREATE TABLE recipient_records (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    email TEXT NOT NULL,
    external_id TEXT,
    cpf_cnpj_hash TEXT,
    razao_social TEXT,
    nome TEXT,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "recipient_records" VALUES('01a1e190-3d08-72e0-894e-d004d7ceccff','acme','sent@example.test','client-1',NULL,NULL,NULL,1800000000000,NULL);
CREATE TABLE ring_clock (
    kind TEXT PRIMARY KEY,
    v INTEGER NOT NULL DEFAULT 0,         -- the start of the last served turn
    turn INTEGER NOT NULL DEFAULT 0,
    seen_at INTEGER NOT NULL DEFAULT 0,
    limit_count INTEGER,
    limit_per_ms INTEGER,
    next_token_us INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO "ring_clock" VALUES('email:send',1333332,5,1800000000000,NULL,NULL,0);
CREATE TABLE seats (
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    vt INTEGER NOT NULL DEFAULT 0,
    last_turn INTEGER NOT NULL DEFAULT 0,
    wake_at INTEGER,
    jobs INTEGER NOT NULL DEFAULT 0,      -- its job rows, counted as they come and go
    processed INTEGER NOT NULL DEFAULT 0,
    last_processed_at INTEGER,
    consecutive INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, tenant)
) STRICT, WITHOUT ROWID;
INSERT INTO "seats" VALUES('email:send','acme',1666665,5,1800000000000,5,5,1800000000000,5);
CREATE TABLE tenant_keys (
    key_hash TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "tenant_keys" VALUES('e63864fffc0a0b72585312b0537ab134daf2e270b606c86c8414fb602c8a573f','acme',1800000000000);
CREATE TABLE tenants (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    tier TEXT,
    weight REAL,
    stride INTEGER NOT NULL,              -- virtual time of one job: from the weight, else the tier's, else 1
    cap INTEGER,
    rate_per_second REAL,
    paused INTEGER NOT NULL,
    next_token_us INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "tenants" VALUES('acme','Acme','gold',NULL,333333,5,NULL,0,0,1800000000000);
INSERT INTO "tenants" VALUES('brasa','',NULL,2.0,500000,NULL,NULL,0,0,1800000000000);
CREATE TABLE tiers (
    name TEXT PRIMARY KEY,
    weight REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "tiers" VALUES('gold',3.0);
CREATE UNIQUE INDEX recipient_by_external_id ON recipient_records (tenant, external_id)
    WHERE external_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX recipient_by_document ON recipient_records (tenant, cpf_cnpj_hash)
    WHERE cpf_cnpj_hash IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX messages_by_expiry ON messages (expires_at, id) WHERE finished_at IS NULL;
CREATE INDEX events_of_message ON events (message_id);
CREATE INDEX dead_letters_by_age ON dead_letters (moved_at);
CREATE INDEX parked_of_seat ON parked (tenant, is_claimed, kind, parked_until, id);
CREATE INDEX seats_in_ring ON seats (kind, vt, last_turn, tenant) WHERE wake_at IS NULL;
CREATE INDEX seats_alarms ON seats (kind, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX seats_of_tenant ON seats (tenant);
CREATE INDEX inbox_of_message ON inbox (message_id);
CREATE VIEW email_outbox AS
SELECT m.id, m.tenant AS companyId, m.state AS status, m.attempts, m.failure ->> 'reason' AS lastError,
    c.content ->> 'html' AS html, m.to_address AS "to", m.subject, m.priority, m.request_id AS requestId,
    strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS enqueuedAt,
    strftime('%Y-%m-%dT%H:%M:%fZ', m.finished_at / 1000.0, 'unixepoch') AS processedAt
FROM messages AS m LEFT JOIN contents AS c ON c.message_no = m.no
WHERE m.kind = 'email:send';
CREATE VIEW email_logs AS
SELECT id AS outboxId, tenant AS companyId, recipient_id AS recipientId, to_address AS "to", subject,
    state AS status, provider_message_id AS sesMessageId,
    failure ->> 'code' AS errorCode, failure ->> 'reason' AS errorReason,
    attempts, duration_ms AS durationMs, request_id AS requestId,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS createdAt,
    CASE state WHEN 'SENT' THEN strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') END AS sentAt,
    CASE WHEN state IN ('FAILED', 'EXPIRED')
        THEN strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') END AS failedAt
FROM messages
WHERE kind = 'email:send';
CREATE VIEW email_events AS
SELECT id, message_id AS emailLogId, type, metadata,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS createdAt
FROM events;
CREATE VIEW recipients AS
SELECT id, tenant AS companyId, external_id AS externalId, cpf_cnpj_hash AS cpfCnpjHash,
    razao_social AS razaoSocial, nome, email,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS createdAt,
    strftime('%Y-%m-%dT%H:%M:%fZ', deleted_at / 1000.0, 'unixepoch') AS deletedAt
FROM recipient_records;
CREATE VIEW dlq AS
SELECT d.message_id AS jobId, d.message_id AS outboxId, d.tenant AS companyId, c.content AS originalData,
    d.failed_attempts AS failedAttempts, d.failure ->> 'reason' AS lastFailureReason,
    d.failure ->> 'code' AS lastFailureCode,
    strftime('%Y-%m-%dT%H:%M:%fZ', d.failed_at / 1000.0, 'unixepoch') AS lastFailureTimestamp,
    strftime('%Y-%m-%dT%H:%M:%fZ', d.enqueued_at / 1000.0, 'unixepoch') AS enqueuedAt,
    strftime('%Y-%m-%dT%H:%M:%fZ', d.moved_at / 1000.0, 'unixepoch') AS movedToDLQAt,
    d.ttl_ms AS ttl, d.reason, d.failure ->> 'category' AS category,
    d.failure ->> 'original_code' AS originalCode
FROM dead_letters AS d
LEFT JOIN messages AS m ON m.id = d.message_id
LEFT JOIN contents AS c ON c.message_no = m.no;
COMMIT;
