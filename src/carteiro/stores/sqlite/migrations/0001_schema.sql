-- The ledger (messages, entries, contents, dead letters), the queue (ready, delayed, leased, seats, ring_clock), and the rest.
-- Times are milliseconds since 1970 (next_token_us: microseconds). Views at the end show the ISO form and the classic names.

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
    created_at INTEGER NOT NULL,
    disabled INTEGER NOT NULL DEFAULT 0,
    default_from TEXT,
    from_domains TEXT NOT NULL DEFAULT '[]',      -- JSON
    allowed_networks TEXT NOT NULL DEFAULT '[]',  -- JSON
    limits TEXT,                                  -- JSON: [a minute, an hour, a day]
    retry_preset TEXT,
    external_id_is_key INTEGER NOT NULL DEFAULT 0,
    contact TEXT,
    automatic_redrive INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- Owners of domains: the domains of tenants.from_domains, in normal form. A domain belongs to only one tenant.
CREATE TABLE sender_domains (
    domain TEXT PRIMARY KEY,
    tenant TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sender_domains_of_tenant ON sender_domains (tenant);

CREATE TABLE tiers (
    name TEXT PRIMARY KEY,
    weight REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Stored only as hashes. With a role: an admin token, of all tenants if tenant is NULL.
CREATE TABLE access_keys (
    id TEXT PRIMARY KEY,
    tenant TEXT,
    key_hash TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    name TEXT NOT NULL,
    role TEXT CHECK (role IN ('viewer', 'operator', 'admin')),
    CHECK (coalesce(role, tenant) IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_keys_of_tenant ON access_keys (tenant, created_at);
CREATE INDEX admin_tokens ON access_keys (created_at) WHERE role IS NOT NULL;

-- People who are signed in to the console. Stored only as hashes. key_id NULL: by a one-time link.
CREATE TABLE sign_ins (
    secret_hash TEXT PRIMARY KEY,
    key_id TEXT,
    who TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Changes and their authors. Without references: a row outlives what it is about. tenant '': the whole installation.
CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    via TEXT NOT NULL,
    who TEXT NOT NULL,
    key_id TEXT,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    object TEXT NOT NULL,
    tenant TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_time ON audit (at, id);
CREATE INDEX audit_by_who ON audit (who, at, id);
CREATE INDEX audit_of_object ON audit (object, at, id);
CREATE INDEX audit_of_tenant ON audit (tenant, at, id);

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

CREATE UNIQUE INDEX recipient_by_external_id ON recipient_records (tenant, external_id)
    WHERE external_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX recipient_by_document ON recipient_records (tenant, cpf_cnpj_hash)
    WHERE cpf_cnpj_hash IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX recipients_named ON recipient_records (external_id, tenant, created_at, id)
    WHERE external_id IS NOT NULL;
CREATE INDEX recipients_by_age ON recipient_records (tenant, created_at, id);
CREATE INDEX recipients_by_email ON recipient_records (tenant, email, created_at, id);

-- Messages as accepted; only an edit and an erasure change one. Joins use the number, users the id.
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
    template_type TEXT,
    tags TEXT,                            -- JSON, in the sender's order; NULL: none
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Indexes for lists of messages, newest first. Each costs a write for every message in it, so each is as small as
-- possible: NULL is left out, and no index has a column that a declare changes.
CREATE INDEX messages_by_age ON messages (created_at);
CREATE INDEX emails_of_tenant ON messages (tenant, created_at) WHERE kind = 'email:send';
CREATE INDEX tasks_of_tenant ON messages (tenant, created_at) WHERE kind <> 'email:send';
-- The tenant is part of each key: a tenant's list reads only its own rows.
CREATE INDEX messages_to ON messages (to_address, tenant, created_at) WHERE to_address IS NOT NULL;
CREATE INDEX messages_by_external_id ON messages (external_id, tenant, created_at) WHERE external_id IS NOT NULL;
CREATE INDEX messages_of_recipient ON messages (recipient_id, created_at) WHERE recipient_id IS NOT NULL;

-- The life of a message since something happened to it; no row: it was accepted, and nothing more. See the view
-- `ledger`. tenant, is_email and created_at repeat the message's, so that ends are found by them.
CREATE TABLE entries (
    message_no INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    is_email INTEGER NOT NULL,
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
    finished_at INTEGER,                  -- not set: it is unfinished, and has a job
    retry_of TEXT,                        -- group@time of the failure that its last or next attempt is a retry of
    timeline TEXT NOT NULL                -- [type, time, metadata], each followed by a comma: see `timelines`
) STRICT;

-- By state. Sent: e-mails that have the provider's id. Unlucky: messages that ended otherwise or failed at least once.
-- The rest is unfinished and has a job: it is found through the queue.
CREATE INDEX entries_sent ON entries (tenant, created_at) WHERE provider_message_id IS NOT NULL AND is_email;
CREATE INDEX entries_unlucky ON entries (tenant, created_at)
    WHERE provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL);
-- Without erased messages: their id is an empty text.
CREATE INDEX entries_by_provider_id ON entries (provider_message_id, tenant, created_at)
    WHERE provider_message_id <> '';

-- Events that a timeline has no room for, in order after those of the entry: usually none.
CREATE TABLE events (
    message_no INTEGER NOT NULL,
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (message_no, position)
) STRICT, WITHOUT ROWID;

-- Unfinished messages, by expiry: each has a job, here or in a separate queue.
CREATE TABLE unfinished (
    expires_at INTEGER NOT NULL,
    message_no INTEGER NOT NULL,
    PRIMARY KEY (expires_at, message_no)
) STRICT, WITHOUT ROWID;

-- The same tags, to find messages by: this key read backwards is newest first.
CREATE TABLE message_tags (
    tenant TEXT NOT NULL,
    tag TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    message_no INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, created_at, message_no)
) STRICT, WITHOUT ROWID;

-- Separate from rows that lists read: a content may be a megabyte.
CREATE TABLE contents (
    message_no INTEGER PRIMARY KEY,
    content TEXT NOT NULL
) STRICT;

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
    redriven_at INTEGER,
    failure_group TEXT NOT NULL,          -- of failures that are alike: see policy/grouping.py
    waits_for TEXT,                       -- the provider whose recovery redrives it; NULL: none does
    automatic_rounds INTEGER NOT NULL DEFAULT 0,  -- since somebody redrove it last
    waits_since INTEGER,                  -- the start of its cool-down
    code TEXT GENERATED ALWAYS AS (failure ->> 'code') VIRTUAL,
    category TEXT GENERATED ALWAYS AS (failure ->> 'category') VIRTUAL
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_letters_by_age ON dead_letters (moved_at);
CREATE INDEX dead_letters_of_tenant ON dead_letters (tenant, moved_at, message_id);
CREATE INDEX dead_letters_with_code ON dead_letters (code, moved_at, message_id);
CREATE INDEX dead_letters_for_reason ON dead_letters (reason, moved_at, message_id);
CREATE INDEX dead_letters_in_group ON dead_letters (failure_group, moved_at, message_id);
CREATE INDEX dead_letters_by_end ON dead_letters (moved_at + ttl_ms, message_id) WHERE redriven_at IS NULL;
CREATE INDEX dead_letters_waiting ON dead_letters (waits_for, tenant, automatic_rounds, waits_since, message_id)
    WHERE waits_for IS NOT NULL AND redriven_at IS NULL;

-- Jobs that redrive dead letters: see policy/ramp.py. tenant '': all of them.
CREATE TABLE redrives (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    wanted TEXT NOT NULL,                 -- the filter, as JSON
    requester TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,                          -- why it stopped or paused by itself
    ramp TEXT NOT NULL,                   -- JSON
    course TEXT NOT NULL,                 -- progress, as JSON
    total INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    is_clean INTEGER NOT NULL,              -- ended, and without items
    provider TEXT                         -- of an automatic one: its dead letters waited for this provider
) STRICT, WITHOUT ROWID;
CREATE INDEX redrives_by_age ON redrives (started_at, id);
CREATE INDEX redrives_of_tenant ON redrives (tenant, started_at, id);
CREATE INDEX redrives_unclean ON redrives (id) WHERE NOT is_clean;

-- Messages that a redrive has sent, until it ends. result NULL: not known yet.
CREATE TABLE redrive_items (
    redrive TEXT NOT NULL,
    message_id TEXT NOT NULL,
    run INTEGER NOT NULL,
    at INTEGER NOT NULL,
    result TEXT,
    PRIMARY KEY (redrive, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX redrive_items_watched ON redrive_items (redrive, at, message_id) WHERE result IS NULL;

-- The content of a version never changes. A type is deleted when its newest version is deleted. A table with row ids, and
-- the long columns last: lists and lookups must not read long texts that they do not need.
CREATE TABLE templates (
    tenant TEXT NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    retry_preset TEXT,
    one_click_unsubscribe INTEGER NOT NULL DEFAULT 0,
    automatic_redrive INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    bytes INTEGER NOT NULL DEFAULT 0,     -- of the three below; no generated column: no index would cover it
    subject TEXT NOT NULL,
    html TEXT,
    text TEXT,
    PRIMARY KEY (tenant, type, version)
) STRICT;
CREATE INDEX templates_by_size ON templates (tenant, type, version, deleted_at, bytes);

-- Suppressed addresses of tenants. An address is found by its hash; each reason is a row of its own.

CREATE TABLE suppressions (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,                    -- SHA-256 of tenant and address
    reason TEXT NOT NULL,
    address TEXT,                         -- NULL: erased
    created_at INTEGER NOT NULL,
    expires_at INTEGER,                   -- end of the suppression; NULL: never
    is_active INTEGER NOT NULL,           -- 0: soft bounces that are only counted
    bounces TEXT NOT NULL,                -- JSON: the moments of the last soft bounces
    PRIMARY KEY (tenant, key, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX suppressions_by_age ON suppressions (tenant, created_at, key || reason);
CREATE INDEX suppressions_by_end ON suppressions (expires_at) WHERE expires_at IS NOT NULL;

-- The number of suppressions of a tenant: counting 100,000 rows would block all other writers.
CREATE TABLE suppression_counts (
    tenant TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER suppressions_more AFTER INSERT ON suppressions BEGIN
    INSERT INTO suppression_counts (tenant, count) VALUES (NEW.tenant, 1)
    ON CONFLICT (tenant) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER suppressions_fewer AFTER DELETE ON suppressions BEGIN
    UPDATE suppression_counts SET count = count - 1 WHERE tenant = OLD.tenant;
    DELETE FROM suppression_counts WHERE tenant = OLD.tenant AND count <= 0;
END;

-- Answers to repeated requests: stored whole, because the message may be pruned earlier.
CREATE TABLE idempotency_keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT,
    request_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_of_message ON idempotency_keys (message_id);

-- Counts of a tenant's messages over HTTP, in the latest window of each length: a new window replaces the old one's row.
CREATE TABLE api_counts (
    tenant TEXT NOT NULL,
    window_ms INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tenant, window_ms)
) STRICT, WITHOUT ROWID;

-- The queue: the job of an unfinished message is ready, delayed or leased, one thin row in one of three tables.

-- The ring of tenants with ready work, per kind. wake_at NULL: in the ring; else when to look again.
CREATE TABLE seats (
    no INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    vt INTEGER NOT NULL DEFAULT 0,
    last_turn INTEGER NOT NULL DEFAULT 0,
    since_turn INTEGER NOT NULL DEFAULT 0, -- the last turn before it came into the ring
    wake_at INTEGER,
    jobs INTEGER NOT NULL DEFAULT 0,      -- its job rows, counted as they come and go
    processed INTEGER NOT NULL DEFAULT 0,
    last_processed_at INTEGER,
    consecutive INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, tenant)
) STRICT;
CREATE INDEX seats_in_ring ON seats (kind, vt, last_turn, tenant) WHERE wake_at IS NULL;
CREATE INDEX seats_alarms ON seats (kind, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX seats_of_tenant ON seats (tenant);

-- In the order of claims, so that the jobs of a turn share a page however many tenants there are.
CREATE TABLE ready (
    seat INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    message_no INTEGER NOT NULL,
    claims INTEGER NOT NULL DEFAULT 0,    -- since its last end
    PRIMARY KEY (seat, priority, due_at, id)
) STRICT, WITHOUT ROWID;
-- Jobs that were claimed before, to find open attempts: few, and usually none.
CREATE INDEX ready_again ON ready (seat, message_no) WHERE claims > 0;

-- Not ready before a time: scheduled, to be retried, or given back with a wait.
CREATE TABLE delayed (
    message_no INTEGER PRIMARY KEY,
    seat INTEGER NOT NULL,
    until INTEGER NOT NULL,
    id TEXT NOT NULL,
    claims INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX delayed_of_seat ON delayed (seat, until, id);
CREATE INDEX delayed_again ON delayed (seat, message_no) WHERE claims > 0;

-- Claimed, until the end of the lease or of the hold. As many rows as workers have jobs: a seat's are read whole.
CREATE TABLE leased (
    seat INTEGER NOT NULL,
    message_no INTEGER NOT NULL,
    claim TEXT NOT NULL,
    until INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    PRIMARY KEY (seat, message_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE ring_clock (
    kind TEXT PRIMARY KEY,
    v INTEGER NOT NULL DEFAULT 0,         -- the start of the last served turn
    turn INTEGER NOT NULL DEFAULT 0,
    seen_at INTEGER NOT NULL DEFAULT 0,
    limit_count INTEGER,
    limit_per_ms INTEGER,
    draws TEXT NOT NULL DEFAULT '[]'      -- from the send limit: [[time, jobs, claim], …]
) STRICT, WITHOUT ROWID;

-- Settings changed at run time, as JSON; absent means: as configured.
CREATE TABLE overrides (
    name TEXT PRIMARY KEY,
    setting TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leads (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The call rate of each provider, shared by all processes: see policy/rates.py. Rates are calls a second; stays is JSON:
-- until when each process counts. A move does not copy it: the rate is measured again.
CREATE TABLE rates (
    provider TEXT PRIMARY KEY,
    ceiling REAL,
    cut_to REAL,
    peak REAL NOT NULL,
    cut_at_us INTEGER NOT NULL,
    next_us INTEGER NOT NULL,
    stays TEXT NOT NULL,
    trouble TEXT -- JSON: why the circuit last opened, when, and until when
) STRICT, WITHOUT ROWID;

-- Figures: see policy/rollups.py. Each accept and each settle leaves a note; upkeep adds notes to minutes and hours.
CREATE TABLE rollup_notes (
    no INTEGER PRIMARY KEY,
    what TEXT NOT NULL,                   -- accepted, sent, changed or seen
    at INTEGER NOT NULL,
    figures TEXT NOT NULL                 -- JSON
) STRICT;

-- By tenant and template type, and by provider; '': all of them.
CREATE TABLE rollups (
    span TEXT NOT NULL,                   -- minute or hour
    tenant TEXT NOT NULL,
    template TEXT NOT NULL,
    provider TEXT NOT NULL,
    at INTEGER NOT NULL,                  -- its start
    weight INTEGER NOT NULL,              -- if there are too many rows, the lightest go
    sent INTEGER NOT NULL,                -- as in the figures
    failed INTEGER NOT NULL,
    figures TEXT NOT NULL,                -- JSON
    PRIMARY KEY (span, tenant, template, provider, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollups_by_age ON rollups (span, at);
-- To find templates that fail without reading those that do not.
CREATE INDEX rollups_failing ON rollups (span, at) WHERE template > '' AND failed > 0;

-- Reports of processes about themselves, while they last. A move does not copy them: they are made again.
CREATE TABLE reports (
    process TEXT PRIMARY KEY,
    until INTEGER NOT NULL,
    said TEXT NOT NULL                    -- JSON: see stores/sql/reports.py
) STRICT, WITHOUT ROWID;

-- Alerts: see policy/alerting.py. An empty subject: the whole installation, or all subjects beyond the limit.
CREATE TABLE alerts (
    name TEXT NOT NULL,
    subject TEXT NOT NULL,
    tenant TEXT NOT NULL,                 -- '': not about a tenant
    state TEXT NOT NULL,
    value REAL NOT NULL,
    threshold REAL NOT NULL,
    since INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    told TEXT,                            -- the state of the last notice
    told_at INTEGER,
    acknowledged_by TEXT NOT NULL,
    PRIMARY KEY (name, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE silences (
    id TEXT PRIMARY KEY,
    alert TEXT NOT NULL,                  -- '*': all
    subject TEXT NOT NULL,                -- '': all
    tenant TEXT NOT NULL,
    reason TEXT NOT NULL,
    by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Notices on their way: for each channel a row, until it has it. An empty channel: for all of them.
CREATE TABLE notices (
    id TEXT NOT NULL,
    channel TEXT NOT NULL,
    tenant TEXT NOT NULL,
    at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    error TEXT NOT NULL,
    document TEXT NOT NULL,               -- JSON
    PRIMARY KEY (id, channel)
) STRICT, WITHOUT ROWID;

-- Failures that are alike: see policy/failures.py. Few: see `failure_groups_trim`.
CREATE TABLE failure_groups (
    id TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    rule TEXT NOT NULL,
    error TEXT NOT NULL,
    reason TEXT NOT NULL,
    code TEXT NOT NULL,
    category TEXT NOT NULL,
    scope TEXT NOT NULL,
    state TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,           -- the first one since it was resolved
    last_seen INTEGER NOT NULL,
    resolved_at INTEGER,
    attempts INTEGER NOT NULL,            -- failed ones
    deaths INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- By hour and tenant; '': all of them. Also all hours together: a list of groups must not read each hour.
CREATE TABLE failure_counts (
    group_id TEXT NOT NULL,
    at INTEGER NOT NULL,                  -- the start of the hour; 0: all hours
    tenant TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    samples TEXT NOT NULL,                -- JSON: the newest messages of the tenant, [[time, id], …]
    retried INTEGER NOT NULL DEFAULT 0,   -- of all hours: results in the history
    history TEXT NOT NULL DEFAULT '',     -- JSON, of all hours: see policy/history.py
    PRIMARY KEY (group_id, at, tenant)
) STRICT, WITHOUT ROWID;
CREATE INDEX failure_counts_by_age ON failure_counts ((CASE at WHEN 0 THEN last_at ELSE at END));
CREATE INDEX failure_counts_of_tenant ON failure_counts (tenant, at);
CREATE INDEX failure_counts_retried ON failure_counts (retried) WHERE retried > 0;

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
CREATE INDEX inbox_of_message ON inbox (message_id);
CREATE INDEX inbox_of_tenant ON inbox (tenant);

-- Messages with what has happened to them. In a statement, put the key into WHERE: after ON, SQLite reads all of it.
CREATE VIEW ledger AS
SELECT
    m.no, m.id, m.tenant, m.kind, m.declares, m.delivery, m.priority, m.ttl_ms, m.request_id, m.external_id,
    m.recipient_id, m.to_address, m.subject, m.template_type, m.tags, m.created_at,
    coalesce(e.state, 'ENQUEUED') AS state, coalesce(e.due_at, m.due_at) AS due_at,
    coalesce(e.expires_at, m.due_at + m.ttl_ms) AS expires_at, coalesce(e.attempts, 0) AS attempts,
    coalesce(e.charged, 0) AS charged, coalesce(e.in_doubt, 0) AS in_doubt, coalesce(e.round, 1) AS round,
    coalesce(e.revision, 1) AS revision, e.holder, e.held_until, e.cancel_requested_at, e.evidence, e.provider,
    e.provider_message_id, e.failure, e.duration_ms, e.finished_at, e.retry_of
FROM messages AS m LEFT JOIN entries AS e ON e.message_no = m.no;

-- All events, in order: the acceptance of an e-mail, the timeline of the entry, then those that it has no room for.
CREATE VIEW timelines AS
SELECT
    (m.no << 20) + t.key AS id, m.no AS message_no, m.id AS message_id, t.value ->> 0 AS type,
    t.value -> 2 AS metadata, t.value ->> 1 AS created_at
FROM messages AS m CROSS JOIN json_each(
    '['
    || iif(m.kind <> 'email:send', '', json_array(
        'ENQUEUED', m.created_at, iif(m.request_id = '', json('{}'), json_object('requestId', m.request_id))
    ) || ',')
    || coalesce((SELECT e.timeline FROM entries AS e WHERE e.message_no = m.no), '')
    || coalesce((
        SELECT group_concat(json_array(v.type, v.created_at, json(v.metadata)) || ',', '')
        FROM events AS v WHERE v.message_no = m.no
    ), '')
    || '0]'
) AS t
WHERE t.type = 'array';

CREATE VIEW email_outbox AS
SELECT m.id, m.tenant AS companyId, m.state AS status, m.attempts, m.failure ->> 'reason' AS lastError,
    c.content ->> 'html' AS html, m.to_address AS "to", m.subject, m.priority, m.request_id AS requestId,
    strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS enqueuedAt,
    strftime('%Y-%m-%dT%H:%M:%fZ', m.finished_at / 1000.0, 'unixepoch') AS processedAt
FROM ledger AS m LEFT JOIN contents AS c ON c.message_no = m.no
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
FROM ledger
WHERE kind = 'email:send';

CREATE VIEW email_events AS
SELECT id, message_id AS emailLogId, type, metadata,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS createdAt
FROM timelines;

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
