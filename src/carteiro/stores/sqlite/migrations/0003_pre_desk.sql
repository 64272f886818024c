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
    subject TEXT NOT NULL,
    html TEXT,
    text TEXT,
    bytes INTEGER NOT NULL GENERATED ALWAYS AS (
        length(CAST(subject AS BLOB)) + ifnull(length(CAST(html AS BLOB)), 0) + ifnull(length(CAST(text AS BLOB)), 0)
    ) VIRTUAL,                            -- kept in the index below alone
    PRIMARY KEY (tenant, type, version)
) STRICT;
CREATE INDEX templates_by_size ON templates (tenant, type, version, deleted_at, bytes);
