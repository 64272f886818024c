-- Whom tenants must not write to. An address is known by its hash, each reason is a row of its own.

CREATE TABLE suppressions (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,                    -- SHA-256 of tenant and address
    reason TEXT NOT NULL,
    address TEXT,                         -- NULL: erased
    created_at INTEGER NOT NULL,
    expires_at INTEGER,                   -- NULL: never; then the row is over
    is_active INTEGER NOT NULL,           -- 0: soft bounces that are merely counted
    bounces TEXT NOT NULL,                -- JSON: the moments of the last soft bounces
    PRIMARY KEY (tenant, key, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX suppressions_by_age ON suppressions (tenant, created_at, key || reason);
CREATE INDEX suppressions_by_end ON suppressions (expires_at) WHERE expires_at IS NOT NULL;
