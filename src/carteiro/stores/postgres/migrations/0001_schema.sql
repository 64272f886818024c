-- Ledger and queue in one database. Times are milliseconds since 1970 (next_token_us: microseconds). Names sort as bytes
-- (COLLATE "C"), so that pages and turns are the same whatever the database's language.
--
-- Rows with many indexes never change: `messages` has the accepted message, `entries` what has happened to it since. An
-- update of an entry touches no index unless the message ends.

CREATE TABLE carteiro.tenants (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    tier text COLLATE "C",
    weight double precision,
    stride bigint NOT NULL,               -- virtual time of one job: from the weight, else the tier's, else 1
    cap integer,
    rate_per_second double precision,
    paused boolean NOT NULL,
    disabled boolean NOT NULL DEFAULT false,
    default_from text,
    from_domains text NOT NULL DEFAULT '[]',      -- JSON
    allowed_networks text NOT NULL DEFAULT '[]',  -- JSON
    limits text,                                  -- JSON: [a minute, an hour, a day]
    retry_preset text,
    external_id_is_key boolean NOT NULL DEFAULT false,
    contact text,
    automatic_redrive boolean NOT NULL DEFAULT true,
    next_token_us bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL
);
CREATE INDEX tenants_of_tier ON carteiro.tenants (tier) WHERE tier IS NOT NULL;

-- Owners of domains: the domains of tenants.from_domains, in normal form. A domain belongs to only one tenant.
CREATE TABLE carteiro.sender_domains (
    domain text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL
);
CREATE INDEX sender_domains_of_tenant ON carteiro.sender_domains (tenant);

CREATE TABLE carteiro.tiers (
    name text COLLATE "C" PRIMARY KEY,
    weight double precision NOT NULL
);

-- Stored only as hashes. With a role: an admin token, of all tenants if tenant is NULL.
CREATE TABLE carteiro.access_keys (
    id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C",
    key_hash text COLLATE "C" NOT NULL UNIQUE,
    hint text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint,
    name text COLLATE "C" NOT NULL,
    role text CHECK (role IN ('viewer', 'operator', 'admin')),
    CHECK (coalesce(role, tenant) IS NOT NULL)
);
CREATE INDEX access_keys_of_tenant ON carteiro.access_keys (tenant, created_at);
CREATE INDEX admin_tokens ON carteiro.access_keys (created_at) WHERE role IS NOT NULL;

-- People who are signed in to the console. Stored only as hashes. key_id NULL: by a one-time link.
CREATE TABLE carteiro.sign_ins (
    secret_hash text COLLATE "C" PRIMARY KEY,
    key_id text COLLATE "C",
    who text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);

-- Changes and their authors. Without references: a row outlives what it is about. tenant '': the whole installation.
CREATE TABLE carteiro.audit (
    id text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL,
    via text NOT NULL,
    who text COLLATE "C" NOT NULL,
    key_id text,
    origin text NOT NULL,
    action text NOT NULL,
    kind text NOT NULL,
    object text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    before text NOT NULL,
    after text NOT NULL
);
CREATE INDEX audit_by_time ON carteiro.audit (at, id);
CREATE INDEX audit_by_who ON carteiro.audit (who, at, id);
CREATE INDEX audit_of_object ON carteiro.audit (object, at, id);
CREATE INDEX audit_of_tenant ON carteiro.audit (tenant, at, id);

CREATE TABLE carteiro.recipient_records (
    id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    email text COLLATE "C" NOT NULL,
    external_id text COLLATE "C",
    cpf_cnpj_hash text COLLATE "C",
    razao_social text,
    nome text,
    created_at bigint NOT NULL,
    deleted_at bigint
);
CREATE UNIQUE INDEX recipient_by_external_id ON carteiro.recipient_records (tenant, external_id)
    WHERE external_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX recipient_by_document ON carteiro.recipient_records (tenant, cpf_cnpj_hash)
    WHERE cpf_cnpj_hash IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX recipients_named ON carteiro.recipient_records (external_id, tenant, created_at, id)
    WHERE external_id IS NOT NULL;
CREATE INDEX recipients_by_age ON carteiro.recipient_records (tenant, created_at, id);
CREATE INDEX recipients_by_email ON carteiro.recipient_records (tenant, email, created_at, id);

CREATE SEQUENCE carteiro.message_no CACHE 1;

-- Accepted messages. Joins use the number, users the id. Only an edit changes `to_address`, `subject` and `content`, and only
-- a retention of contents or an erasure removes the latter.
CREATE TABLE carteiro.messages (
    no bigint PRIMARY KEY,                -- of carteiro.message_no
    id text COLLATE "C" NOT NULL UNIQUE,
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    declares boolean NOT NULL,
    delivery text NOT NULL,
    priority smallint NOT NULL,
    ttl_ms bigint NOT NULL,
    request_id text NOT NULL,
    external_id text COLLATE "C",
    recipient_id text COLLATE "C",
    to_address text COLLATE "C",
    subject text,
    template_type text,
    tags text,                            -- JSON, in the sender's order; NULL: none
    due_at bigint NOT NULL,               -- of its first attempt
    created_at bigint NOT NULL,
    content text                          -- JSON; NULL: deleted
);
CREATE INDEX messages_by_age ON carteiro.messages (created_at, no);
CREATE INDEX emails_of_tenant ON carteiro.messages (tenant, created_at, no) WHERE kind = 'email:send';
CREATE INDEX tasks_of_tenant ON carteiro.messages (tenant, created_at, no) WHERE kind <> 'email:send';
-- The tenant is part of each key: a tenant's list reads only its own rows.
CREATE INDEX messages_to ON carteiro.messages (to_address, tenant, created_at, no) WHERE to_address IS NOT NULL;
CREATE INDEX messages_by_external_id ON carteiro.messages (external_id, tenant, created_at, no)
    WHERE external_id IS NOT NULL;
CREATE INDEX messages_of_recipient ON carteiro.messages (recipient_id, created_at, no)
    WHERE recipient_id IS NOT NULL;

-- Everything that has happened to a message. Without an entry it is ENQUEUED, without attempts. Readers want both: the
-- view `ledger`. `version` counts the changes, 0 stands for none: a writer names the one that it has seen.
-- tenant, is_email and created_at repeat the message's, so that ends are found by them.
CREATE TABLE carteiro.entries (
    message_no bigint PRIMARY KEY,
    version integer NOT NULL DEFAULT 1,   -- 1: as it was moved here; the first change here makes it 2
    state text NOT NULL,
    due_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,  -- provider calls
    charged integer NOT NULL DEFAULT 0,   -- failures of this round that count against the policy
    in_doubt integer NOT NULL DEFAULT 0,  -- unknown outcomes of this round
    round integer NOT NULL DEFAULT 1,
    revision integer NOT NULL DEFAULT 1,
    holder text,                          -- the claim that declared or settled last
    held_until bigint,                    -- set while an attempt is declared and not settled
    cancel_requested_at bigint,
    evidence text,                        -- [claim, provider, provider id, revision] of a late success
    provider text,
    provider_message_id text COLLATE "C",
    failure json,                         -- the last one
    duration_ms bigint,
    finished_at bigint,                   -- not set: it is unfinished, and has a job
    retry_of text,                        -- group@time of the failure that its last or next attempt is a retry of
    tenant text COLLATE "C" NOT NULL,
    is_email boolean NOT NULL,
    created_at bigint NOT NULL,
    timeline text NOT NULL DEFAULT ''     -- [type, time, metadata], each followed by a comma: see `timelines`
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
-- Sent: e-mails that have the provider's id. Unlucky: messages that ended otherwise or failed at least once.
CREATE INDEX entries_sent ON carteiro.entries (tenant, created_at, message_no)
    WHERE provider_message_id IS NOT NULL AND is_email;
-- Without erased messages: their id is an empty text.
CREATE INDEX entries_by_provider_id ON carteiro.entries (provider_message_id, tenant, created_at, message_no)
    WHERE provider_message_id <> '';
CREATE INDEX entries_unlucky ON carteiro.entries (tenant, created_at, message_no)
    WHERE provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL);

-- Changes that applications requested by SQL (functions/table_queue.sql) and that no process has applied yet: usually
-- none. Applications add rows here and lock nothing else that workers write.
CREATE TABLE carteiro.queue_changes (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_no bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,     -- requests are applied by tenant in turn
    what text NOT NULL,                   -- cancel, redrive, fail, reschedule, limit
    number bigint,                        -- of reschedule: when; of limit: how many
    reason text,                          -- of fail
    role name NOT NULL,                   -- who requested it
    -- Values that email_queue shows until it is applied; is_revival: also of a failed e-mail.
    status text NOT NULL,
    retries integer NOT NULL,
    max_retries integer NOT NULL,
    next_retry_at timestamptz,
    error_message text,
    is_revival boolean NOT NULL
);
CREATE INDEX queue_changes_of_message ON carteiro.queue_changes (message_no, no);
CREATE INDEX queue_changes_of_tenant ON carteiro.queue_changes (tenant, no);

-- Locks of accepts (keys, limits, recipients), a row each: advisory locks could be taken by any role that connects. A row
-- holds no data: upkeep deletes unlocked ones.
CREATE UNLOGGED TABLE carteiro.door_locks (
    name bigint PRIMARY KEY
);

-- Events that a timeline has no room for, in order after those of the entry: usually none.
CREATE TABLE carteiro.events (
    message_no bigint NOT NULL,
    position integer NOT NULL,
    type text NOT NULL,
    metadata json NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (message_no, position)
);

-- Unfinished messages, by expiry: each has a job, here or in a separate queue.
CREATE TABLE carteiro.unfinished (
    expires_at bigint NOT NULL,
    message_no bigint NOT NULL,
    PRIMARY KEY (expires_at, message_no)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- The same tags, to find messages by: this key read backwards is newest first.
CREATE TABLE carteiro.message_tags (
    tenant text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    message_no bigint NOT NULL,
    PRIMARY KEY (tenant, tag, created_at, message_no)
);
CREATE INDEX tags_of_message ON carteiro.message_tags (message_no);

-- Answers to repeated requests: stored whole, because the message may be pruned earlier.
CREATE TABLE carteiro.idempotency_keys (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    recipient_id text,
    request_id text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_keys_by_age ON carteiro.idempotency_keys (created_at);
CREATE INDEX idempotency_keys_of_message ON carteiro.idempotency_keys (message_id);

-- Counts of a tenant's messages over HTTP, in the latest window of each length: a new window replaces the old one's row.
CREATE TABLE carteiro.api_counts (
    tenant text COLLATE "C" NOT NULL,
    window_ms bigint NOT NULL,
    starts_at bigint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (tenant, window_ms)
);

CREATE TABLE carteiro.dead_letters (
    message_id text COLLATE "C" PRIMARY KEY,
    message_no bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    failure json NOT NULL,
    failed_attempts integer NOT NULL,
    failed_at bigint NOT NULL,
    enqueued_at bigint NOT NULL,
    moved_at bigint NOT NULL,
    ttl_ms bigint NOT NULL,
    redriven_at bigint,
    failure_group text COLLATE "C" NOT NULL, -- of failures that are alike: see policy/grouping.py
    waits_for text COLLATE "C",              -- the provider whose recovery redrives it; NULL: none does
    automatic_rounds integer NOT NULL DEFAULT 0, -- since somebody redrove it last
    waits_since bigint,                      -- the start of its cool-down
    said text COLLATE "C" NOT NULL           -- code, reason and address, as they are searched
);
CREATE INDEX dead_letters_by_age ON carteiro.dead_letters (moved_at, message_id);
CREATE INDEX dead_letters_of_tenant ON carteiro.dead_letters (tenant, moved_at, message_id);
CREATE INDEX dead_letters_with_code ON carteiro.dead_letters (code, moved_at, message_id);
CREATE INDEX dead_letters_for_reason ON carteiro.dead_letters (reason, moved_at, message_id);
CREATE INDEX dead_letters_in_group ON carteiro.dead_letters (failure_group, moved_at, message_id);
CREATE INDEX dead_letters_by_end ON carteiro.dead_letters ((moved_at + ttl_ms), message_id)
    WHERE redriven_at IS NULL;
CREATE INDEX dead_letters_waiting
    ON carteiro.dead_letters (waits_for, tenant, automatic_rounds, waits_since, message_id)
    WHERE waits_for IS NOT NULL AND redriven_at IS NULL;

-- Jobs that redrive dead letters: see policy/ramp.py. tenant '': all of them.
CREATE TABLE carteiro.redrives (
    id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    wanted text NOT NULL,                 -- the filter, as JSON
    requester text NOT NULL,
    state text NOT NULL,
    reason text,                          -- why it stopped or paused by itself
    ramp text NOT NULL,                   -- JSON
    course text NOT NULL,                 -- progress, as JSON
    total bigint NOT NULL,
    started_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    version bigint NOT NULL,
    is_clean boolean NOT NULL,              -- ended, and without items
    provider text COLLATE "C"               -- of an automatic one: its dead letters waited for this provider
);
CREATE INDEX redrives_by_age ON carteiro.redrives (started_at, id);
CREATE INDEX redrives_of_tenant ON carteiro.redrives (tenant, started_at, id);
CREATE INDEX redrives_unclean ON carteiro.redrives (id) WHERE NOT is_clean;

-- Messages that a redrive has sent, until it ends. result NULL: not known yet.
CREATE TABLE carteiro.redrive_items (
    redrive text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    run integer NOT NULL,
    at bigint NOT NULL,
    result text,
    PRIMARY KEY (redrive, message_id)
);
CREATE INDEX redrive_items_watched ON carteiro.redrive_items (redrive, at, message_id) WHERE result IS NULL;

-- The content of a version never changes. A type is deleted when its newest version is deleted.
CREATE TABLE carteiro.templates (
    tenant text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    subject text NOT NULL,
    html text,
    text text,
    retry_preset text,
    one_click_unsubscribe boolean NOT NULL DEFAULT false,
    automatic_redrive boolean NOT NULL DEFAULT true,
    created_at bigint NOT NULL,
    deleted_at bigint,
    bytes integer NOT NULL GENERATED ALWAYS AS (
        octet_length(subject) + coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0)
    ) STORED,
    PRIMARY KEY (tenant, type, version)
);

-- Suppressed addresses of tenants. An address is found by its hash; each reason is a row of its own.
CREATE TABLE carteiro.suppressions (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,        -- SHA-256 of tenant and address
    reason text COLLATE "C" NOT NULL,
    address text,                         -- NULL: erased
    created_at bigint NOT NULL,
    expires_at bigint,                    -- end of the suppression; NULL: never
    is_active boolean NOT NULL,           -- false: soft bounces that are only counted
    bounces text NOT NULL,                -- JSON: the moments of the last soft bounces
    PRIMARY KEY (tenant, key, reason)
);
CREATE INDEX suppressions_by_age ON carteiro.suppressions (tenant, created_at, (key || reason));
CREATE INDEX suppressions_by_end ON carteiro.suppressions (expires_at) WHERE expires_at IS NOT NULL;

-- The queue: each unfinished message is in one of three tables: `ready` to be claimed, `delayed` until a time,
-- `leased` to a worker until the lease or the hold ends. `rank` is priority and due time in one number (see
-- `carteiro.rank`), so that ready jobs are stored in the order of their claims. Any transaction may add to `ready` and `delayed`;
-- only claim takes from them.
CREATE TABLE carteiro.ready (
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    rank bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    message_no bigint NOT NULL,
    claims integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, kind, rank, id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
-- Open attempts are found by their jobs: all that are leased, and those that were before. An index of entries that have a
-- hold would be written by every declare, and with it every other index of the row.
CREATE INDEX ready_again ON carteiro.ready (tenant, message_no) WHERE claims > 0;

CREATE TABLE carteiro.delayed (
    message_no bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    rank bigint NOT NULL,
    parked_until bigint NOT NULL,
    claims integer NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delayed_of_seat ON carteiro.delayed (tenant, kind, parked_until, id);
CREATE INDEX delayed_again ON carteiro.delayed (tenant, message_no) WHERE claims > 0;

-- Leases by claim: a row has the messages of one tenant and kind with the same end. See functions/leases.sql.
CREATE TABLE carteiro.leased (
    claim_id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    parked_until bigint NOT NULL,
    claims integer NOT NULL,
    numbers bigint[] NOT NULL,
    PRIMARY KEY (claim_id, tenant, kind, parked_until, claims)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
-- Their number is unknown to the planner, so queries must leave no choice: those of a seat compare all three columns as one.
CREATE INDEX leased_by_end ON carteiro.leased (kind, parked_until);
CREATE INDEX leased_of_seat ON carteiro.leased (tenant, kind, parked_until);

-- The lock of a claim's leases.
CREATE TABLE carteiro.claims (
    id text COLLATE "C" PRIMARY KEY
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- The ring of tenants with ready work, per kind: only claim writes it, under the lock of `carteiro.ring`.
-- wake_at NULL: in the ring; else when to look again. No ready job of a seat has a rank below `lowest`, and no delayed one a
-- time before `due_from`, except those that a note names: so dead rows are not scanned again, however long
-- an open transaction delays vacuum. For the same reason the rows that every claim writes are numbered: `n` grows with
-- each change, and a query for a seat takes the newest (ORDER BY n DESC LIMIT 1) without reading its older versions.
-- There is one seat for each kind and tenant: only the holder of the ring's lock adds seats.
CREATE TABLE carteiro.seats (
    kind text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    n bigint NOT NULL DEFAULT 1,
    vt bigint NOT NULL DEFAULT 0,
    last_turn bigint NOT NULL DEFAULT 0,
    since_turn bigint NOT NULL DEFAULT 0, -- the last turn before it came into the ring
    wake_at bigint,
    lowest bigint NOT NULL DEFAULT 0,
    due_from bigint NOT NULL DEFAULT 0,
    jobs bigint NOT NULL DEFAULT 0,       -- its job rows, counted as they come and go
    processed bigint NOT NULL DEFAULT 0,
    last_processed_at bigint,
    consecutive bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, kind, n)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX seats_in_ring ON carteiro.seats (kind, vt, last_turn, tenant) WHERE wake_at IS NULL;
CREATE INDEX seats_alarms ON carteiro.seats (kind, wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE carteiro.ring_clock (
    kind text COLLATE "C" NOT NULL,
    n bigint NOT NULL DEFAULT 1,          -- as in seats
    v bigint NOT NULL DEFAULT 0,          -- the start of the last served turn
    turn bigint NOT NULL DEFAULT 0,
    seen_at bigint NOT NULL DEFAULT 0,    -- the last time at which jobs were taken: no alarm is more than a second before it
    limit_count bigint,
    limit_per_ms bigint,
    draws text NOT NULL DEFAULT '[]',     -- from the send limit: [[time, jobs, claim], …]
    least_vt bigint NOT NULL DEFAULT 0,   -- no seat in the ring is before it: where a walk begins
    lost_from bigint NOT NULL DEFAULT 0,  -- no lease ends before it, except those that a note names
    PRIMARY KEY (kind, n)
) WITH (fillfactor = 50);

-- Notes for claim: an open transaction must neither hide nor block a tenant, so only claim writes the ring, and others
-- leave notes. Never updated. Claim reads those that it has not seen: `seen` is the snapshot of its last read.
--   jobs: change of their number; wake_at: look at the seat then; rank: the least that was added to `ready`;
--   lease_end: a lease ends earlier than before;
--   kind '' : a slot of the tenant became free.
CREATE TABLE carteiro.notes (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    kind text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    jobs integer NOT NULL DEFAULT 0,
    wake_at bigint NOT NULL,
    rank bigint,
    lease_end bigint
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX notes_by_transaction ON carteiro.notes (xid);

-- Jobs of seats that ended, for their number: claim need not know it, so it adds up thousands at once.
CREATE TABLE carteiro.tallies (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    jobs integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- One row, which is the lock of the ring: `carteiro.lock_ring()`.
CREATE TABLE carteiro.ring (
    n bigint PRIMARY KEY DEFAULT 1,       -- as in seats
    seen pg_snapshot NOT NULL,
    folded bigint NOT NULL DEFAULT 0,     -- notes read since read notes were last deleted
    tallied bigint NOT NULL DEFAULT 0     -- up to which tally they were last added up
) WITH (fillfactor = 50);
INSERT INTO carteiro.ring (seen) VALUES (pg_current_snapshot());

-- Settings changed at run time, as JSON; absent means: as configured.
CREATE TABLE carteiro.overrides (
    name text COLLATE "C" PRIMARY KEY,
    setting text NOT NULL
);

-- The channel on which processes wake each other. Every role that can connect can notify a channel by name, and each
-- notification is work for every process: so the name is secret, and in no function's text.
CREATE TABLE carteiro.wake_channel (
    channel text NOT NULL
);
INSERT INTO carteiro.wake_channel (channel) VALUES ('carteiro_' || gen_random_uuid());

CREATE TABLE carteiro.leads (
    name text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    until bigint NOT NULL,
    seen_at bigint NOT NULL
);

-- The call rate of each provider, shared by all processes: see policy/rates.py. Rates are calls a second; stays is JSON:
-- until when each process counts. One row is updated often: free space in its page avoids index updates.
CREATE TABLE carteiro.rates (
    provider text COLLATE "C" PRIMARY KEY,
    ceiling double precision,
    cut_to double precision,
    peak double precision NOT NULL,
    cut_at_us bigint NOT NULL,
    next_us bigint NOT NULL,
    stays text NOT NULL,
    trouble text -- JSON: why the circuit last opened, when, and until when
) WITH (fillfactor = 50);

-- Figures: see policy/rollups.py. Each accept and each settle leaves a note; upkeep adds notes to minutes and hours.
CREATE TABLE carteiro.rollup_notes (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    what text COLLATE "C" NOT NULL,       -- accepted, sent, changed or seen
    at bigint NOT NULL,
    figures text NOT NULL                 -- JSON
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- By tenant and template type, and by provider; '': all of them.
CREATE TABLE carteiro.rollups (
    span text COLLATE "C" NOT NULL,       -- minute or hour
    tenant text COLLATE "C" NOT NULL,
    template text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    at bigint NOT NULL,                   -- its start
    weight bigint NOT NULL,               -- if there are too many rows, the lightest go
    sent bigint NOT NULL,                 -- as in the figures
    failed bigint NOT NULL,
    figures text NOT NULL,                -- JSON
    PRIMARY KEY (span, tenant, template, provider, at)
) WITH (fillfactor = 70);
CREATE INDEX rollups_by_age ON carteiro.rollups (span, at);
-- To find templates that fail without reading those that do not.
CREATE INDEX rollups_failing ON carteiro.rollups (span, at) WHERE template > '' AND failed > 0;

-- Reports of processes about themselves, while they last. A move does not copy them: they are made again.
CREATE TABLE carteiro.reports (
    process text COLLATE "C" PRIMARY KEY,
    until bigint NOT NULL,
    said text NOT NULL                    -- JSON: see stores/sql/reports.py
) WITH (fillfactor = 50);

-- Alerts: see policy/alerting.py. An empty subject: the whole installation, or all subjects beyond the limit.
CREATE TABLE carteiro.alerts (
    name text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,     -- '': not about a tenant
    state text COLLATE "C" NOT NULL,
    value double precision NOT NULL,
    threshold double precision NOT NULL,
    since bigint NOT NULL,
    seen_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    told text COLLATE "C",                -- the state of the last notice
    told_at bigint,
    acknowledged_by text NOT NULL,
    PRIMARY KEY (name, subject)
) WITH (fillfactor = 70);

CREATE TABLE carteiro.silences (
    id text COLLATE "C" PRIMARY KEY,
    alert text COLLATE "C" NOT NULL,      -- '*': all
    subject text COLLATE "C" NOT NULL,    -- '': all
    tenant text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    by text NOT NULL,
    created_at bigint NOT NULL,
    until bigint NOT NULL
);

-- Notices on their way: for each channel a row, until it has it. An empty channel: for all of them.
CREATE TABLE carteiro.notices (
    id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    due_at bigint NOT NULL,
    tries integer NOT NULL,
    error text NOT NULL,
    document text NOT NULL,               -- JSON
    PRIMARY KEY (id, channel)
);

-- Failures that are alike: see policy/failures.py. Few: see `failure_groups_trim`.
CREATE TABLE carteiro.failure_groups (
    id text COLLATE "C" PRIMARY KEY,
    provider text COLLATE "C" NOT NULL,
    rule text COLLATE "C" NOT NULL,
    error text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    code text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    first_seen bigint NOT NULL,
    opened_at bigint NOT NULL, -- the first one since it was resolved
    last_seen bigint NOT NULL,
    resolved_at bigint,
    attempts bigint NOT NULL, -- failed ones
    deaths bigint NOT NULL
) WITH (fillfactor = 70);

-- By hour and tenant; '': all of them. Also all hours together: a list of groups must not read each hour.
CREATE TABLE carteiro.failure_counts (
    group_id text COLLATE "C" NOT NULL,
    at bigint NOT NULL, -- the start of the hour; 0: all hours
    tenant text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    deaths bigint NOT NULL,
    first_at bigint NOT NULL,
    last_at bigint NOT NULL,
    samples text NOT NULL, -- JSON: the newest messages of the tenant, [[time, id], …]
    retried bigint NOT NULL DEFAULT 0, -- of all hours: results in the history
    history text NOT NULL DEFAULT '', -- JSON, of all hours: see policy/history.py
    PRIMARY KEY (group_id, at, tenant)
) WITH (fillfactor = 70);
CREATE INDEX failure_counts_by_age ON carteiro.failure_counts ((CASE at WHEN 0 THEN last_at ELSE at END));
CREATE INDEX failure_counts_of_tenant ON carteiro.failure_counts (tenant, at);
CREATE INDEX failure_counts_retried ON carteiro.failure_counts (retried) WHERE retried > 0;

CREATE TABLE carteiro.inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    to_address text NOT NULL,
    subject text NOT NULL,
    content text NOT NULL,
    provider_message_id text NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX inbox_of_message ON carteiro.inbox (message_id, id);
CREATE INDEX inbox_of_tenant ON carteiro.inbox (tenant, id);

-- The tenant of a database role. Kept when the tenant is erased: the role must not become another tenant's.
CREATE TABLE carteiro.client_roles (
    role name PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL
);

-- Columns of a row that the ledger does not have: its user, and the maximum of retries. The worker reads the latter at the
-- start of the content.
CREATE TABLE carteiro.queue_rows (
    id uuid PRIMARY KEY,
    message_no bigint NOT NULL UNIQUE REFERENCES carteiro.messages (no) ON DELETE CASCADE,
    tenant text COLLATE "C" NOT NULL,
    user_id uuid,
    max_retries integer NOT NULL
);
CREATE INDEX queue_rows_of_tenant ON carteiro.queue_rows (tenant, message_no);
ALTER TABLE carteiro.queue_rows ENABLE ROW LEVEL SECURITY;
ALTER TABLE carteiro.queue_rows FORCE ROW LEVEL SECURITY;

-- Rows cannot be locked: workers write the rows behind them. The outer joins alone refuse FOR UPDATE with an unhelpful
-- error. So the view also joins an empty table, which the planner drops unless rows are locked: then the policy for locks
-- is checked first, whose condition raises a better error.
CREATE TABLE carteiro.row_locks (no integer PRIMARY KEY);
ALTER TABLE carteiro.row_locks ENABLE ROW LEVEL SECURITY;
ALTER TABLE carteiro.row_locks FORCE ROW LEVEL SECURITY;
