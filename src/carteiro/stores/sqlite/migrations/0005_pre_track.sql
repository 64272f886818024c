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

-- How many rows of suppressions a tenant has: to count 100,000 would hold up all others who write.
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
