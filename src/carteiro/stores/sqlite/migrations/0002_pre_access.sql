-- Who may come in and how often: keys with an end, idempotency keys, API limits, tenants' own settings; tags.

ALTER TABLE tenants ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN default_from TEXT;
ALTER TABLE tenants ADD COLUMN from_domains TEXT NOT NULL DEFAULT '[]';      -- JSON
ALTER TABLE tenants ADD COLUMN allowed_networks TEXT NOT NULL DEFAULT '[]';  -- JSON
ALTER TABLE tenants ADD COLUMN limits TEXT;                                  -- JSON: [a minute, an hour, a day]
ALTER TABLE tenants ADD COLUMN retry_preset TEXT;
ALTER TABLE tenants ADD COLUMN external_id_is_key INTEGER NOT NULL DEFAULT 0;

-- Whose a domain is: what tenants.from_domains lists, in its normal form. A domain is one tenant's alone.
CREATE TABLE sender_domains (
    domain TEXT PRIMARY KEY,
    tenant TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sender_domains_of_tenant ON sender_domains (tenant);

-- Known by their hash alone. tenant NULL: an administrator's.
CREATE TABLE access_keys (
    id TEXT PRIMARY KEY,
    tenant TEXT,
    key_hash TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX access_keys_of_tenant ON access_keys (tenant, created_at);

-- The old table stays for processes that have the file open already; nothing reads or writes it from here on.
INSERT INTO access_keys (id, tenant, key_hash, hint, created_at)
SELECT lower(hex(randomblob(16))), tenant, key_hash, '', created_at
FROM tenant_keys;

-- What answers a request that comes again: whole, for its message may be pruned before it.
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

-- What a tenant handed in over HTTP, in the latest window of each length: a new window takes the old one's row.
CREATE TABLE api_counts (
    tenant TEXT NOT NULL,
    window_ms INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tenant, window_ms)
) STRICT, WITHOUT ROWID;

ALTER TABLE messages ADD COLUMN template_type TEXT;
ALTER TABLE messages ADD COLUMN tags TEXT;  -- JSON, in the sender's order; NULL: none

-- The same tags, to find messages by: newest first is this key read backwards.
CREATE TABLE message_tags (
    tenant TEXT NOT NULL,
    tag TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    message_no INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, created_at, message_no)
) STRICT, WITHOUT ROWID;
