-- The desk: dead letters found by whose, why and when; templates.

ALTER TABLE dead_letters ADD COLUMN code TEXT GENERATED ALWAYS AS (failure ->> 'code') VIRTUAL;
ALTER TABLE dead_letters ADD COLUMN category TEXT GENERATED ALWAYS AS (failure ->> 'category') VIRTUAL;
CREATE INDEX dead_letters_of_tenant ON dead_letters (tenant, moved_at, message_id);
CREATE INDEX dead_letters_with_code ON dead_letters (code, moved_at, message_id);
CREATE INDEX dead_letters_for_reason ON dead_letters (reason, moved_at, message_id);
CREATE INDEX dead_letters_by_end ON dead_letters (moved_at + ttl_ms, message_id) WHERE redriven_at IS NULL;

-- What a version says never changes. A type is out of use when its newest version is deleted. A table with row ids, and
-- the long columns last: lists and look-ups must not read through texts that they do not ask for.
CREATE TABLE templates (
    tenant TEXT NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    retry_preset TEXT,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    bytes INTEGER NOT NULL DEFAULT 0,     -- of the three below; no generated column: no index would cover it
    subject TEXT NOT NULL,
    html TEXT,
    text TEXT,
    PRIMARY KEY (tenant, type, version)
) STRICT;
CREATE INDEX templates_by_size ON templates (tenant, type, version, deleted_at, bytes);
