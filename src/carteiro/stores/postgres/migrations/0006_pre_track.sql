-- Whom tenants must not write to. An address is known by its hash, each reason is a row of its own.

CREATE TABLE carteiro.suppressions (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,        -- SHA-256 of tenant and address
    reason text COLLATE "C" NOT NULL,
    address text,                         -- NULL: erased
    created_at bigint NOT NULL,
    expires_at bigint,                    -- NULL: never; then the row is over
    is_active boolean NOT NULL,           -- false: soft bounces that are merely counted
    bounces text NOT NULL,                -- JSON: the moments of the last soft bounces
    PRIMARY KEY (tenant, key, reason)
);
CREATE INDEX suppressions_by_age ON carteiro.suppressions (tenant, created_at, (key || reason));
CREATE INDEX suppressions_by_end ON carteiro.suppressions (expires_at) WHERE expires_at IS NOT NULL;
