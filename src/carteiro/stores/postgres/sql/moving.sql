-- name: move_allow
-- This transaction belongs to the move, and does not wait for the disk: the last one waits for all before it.
SELECT set_config('carteiro.moving', 'yes', true), set_config('synchronous_commit', 'off', true);

-- name: move_clear
-- Deletes rows made from settings, and the audit rows about them: every process makes them again at its start.
DELETE FROM carteiro.audit;
DELETE FROM carteiro.tiers;
DELETE FROM carteiro.ring_clock;
DELETE FROM carteiro.leads;

-- name: move_counts
-- The number of rows, by table.
SELECT 'tenants', count(*) FROM carteiro.tenants
UNION ALL SELECT 'tiers', count(*) FROM carteiro.tiers
UNION ALL SELECT 'sender_domains', count(*) FROM carteiro.sender_domains
UNION ALL SELECT 'access_keys', count(*) FROM carteiro.access_keys
UNION ALL SELECT 'audit', count(*) FROM carteiro.audit
UNION ALL SELECT 'recipient_records', count(*) FROM carteiro.recipient_records
UNION ALL SELECT 'messages', count(*) FROM carteiro.messages
UNION ALL SELECT 'entries', count(*) FROM carteiro.entries
UNION ALL SELECT 'contents', count(content) FROM carteiro.messages
UNION ALL SELECT 'events', count(*) FROM carteiro.events
UNION ALL SELECT 'unfinished', count(*) FROM carteiro.unfinished
UNION ALL SELECT 'message_tags', count(*) FROM carteiro.message_tags
UNION ALL SELECT 'dead_letters', count(*) FROM carteiro.dead_letters
UNION ALL SELECT 'redrives', count(*) FROM carteiro.redrives
UNION ALL SELECT 'redrive_items', count(*) FROM carteiro.redrive_items
UNION ALL SELECT 'idempotency_keys', count(*) FROM carteiro.idempotency_keys
UNION ALL SELECT 'api_counts', count(*) FROM carteiro.api_counts
UNION ALL SELECT 'templates', count(*) FROM carteiro.templates
UNION ALL SELECT 'suppressions', count(*) FROM carteiro.suppressions
UNION ALL SELECT 'inbox', count(*) FROM carteiro.inbox
UNION ALL SELECT 'overrides', count(*) FROM carteiro.overrides WHERE name <> 'moved_from'
UNION ALL SELECT 'rollups', count(*) FROM carteiro.rollups
UNION ALL SELECT 'rollup_notes', count(*) FROM carteiro.rollup_notes
UNION ALL SELECT 'alerts', count(*) FROM carteiro.alerts
UNION ALL SELECT 'silences', count(*) FROM carteiro.silences
UNION ALL SELECT 'notices', count(*) FROM carteiro.notices
UNION ALL SELECT 'failure_groups', count(*) FROM carteiro.failure_groups
UNION ALL SELECT 'failure_counts', count(*) FROM carteiro.failure_counts
UNION ALL SELECT 'ring_clock', count(*) FROM carteiro.ring_clock
UNION ALL SELECT 'seats', count(*) FROM carteiro.seats
UNION ALL SELECT 'jobs', (SELECT count(*) FROM carteiro.ready) + (SELECT count(*) FROM carteiro.delayed);

-- name: move_empty
-- Deletes rows that an undone move had copied.
TRUNCATE
carteiro.tenants, carteiro.tiers, carteiro.sender_domains, carteiro.access_keys, carteiro.audit, carteiro.recipient_records, carteiro.messages,
carteiro.entries, carteiro.events, carteiro.unfinished, carteiro.message_tags, carteiro.dead_letters,
carteiro.redrives, carteiro.redrive_items,
carteiro.idempotency_keys, carteiro.api_counts, carteiro.templates, carteiro.inbox, carteiro.overrides,
carteiro.suppressions, carteiro.rollups, carteiro.rollup_notes, carteiro.alerts, carteiro.silences, carteiro.notices,
carteiro.failure_groups, carteiro.failure_counts,
carteiro.ring_clock, carteiro.seats, carteiro.ready, carteiro.delayed, carteiro.leased, carteiro.claims, carteiro.notes, carteiro.tallies,
carteiro.leads,
carteiro.queue_rows, carteiro.queue_changes;

-- name: move_fence
-- Refuses everything but a move from now on: writes and claims get an error.
CREATE OR REPLACE FUNCTION carteiro.refuse_until_moved() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF current_setting('carteiro.moving', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'a move into this database is not finished, or was undone: see carteiro move'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NULL;
END
$$;
DO $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT c.oid FROM pg_class AS c
        WHERE c.relnamespace = 'carteiro'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'migrations'
        ORDER BY c.relname
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE TRIGGER unfinished_move BEFORE INSERT OR UPDATE OR DELETE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION carteiro.refuse_until_moved()', v_table
        );
    END LOOP;
END
$$;

-- name: move_jobs
-- Adds the jobs of unfinished messages. $1 message numbers; $2 end of each wait, null: it is ready; $3 claims
WITH jobs AS MATERIALIZED (
    SELECT m.no, m.id, m.kind, m.tenant, carteiro.rank(m.priority, m.due_at) AS rank, j.parked_until, j.claims
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS j (message_no, parked_until, claims)
    JOIN carteiro.ledger AS m ON m.no = j.message_no
),
delayed AS (
    INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until, claims)
    SELECT no, id, kind, tenant, rank, parked_until, claims FROM jobs WHERE parked_until IS NOT NULL
)
INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no, claims)
SELECT tenant, kind, rank, id, no, claims FROM jobs WHERE parked_until IS NULL;

-- name: move_mark
-- The state of the move into this database, locked until the end of the transaction.
SELECT setting FROM carteiro.overrides WHERE name = 'moved_from' FOR UPDATE;

-- name: move_numbers
-- Continues the numbers after the copied rows; returns the last message number.
SELECT
    setval('carteiro.message_no', coalesce((SELECT max(no) FROM carteiro.messages), 0) + 1, false) - 1 AS last_no,
    setval(
        pg_get_serial_sequence('carteiro.inbox', 'id'),
        coalesce((SELECT max(id) FROM carteiro.inbox), 0) + 1, false
    ),
    setval(
        pg_get_serial_sequence('carteiro.rollup_notes', 'no'),
        coalesce((SELECT max(no) FROM carteiro.rollup_notes), 0) + 1, false
    );

-- name: move_since
-- Changes since the end of the move. $1 the last copied number
SELECT
    (SELECT count(*) FROM carteiro.messages WHERE no > $1::bigint) AS accepted,
    (SELECT count(*) FROM carteiro.entries WHERE message_no <= $1::bigint AND version > 1) AS changed,
    (SELECT coalesce(sum(cardinality(numbers)), 0)::bigint FROM carteiro.leased) AS leased;

-- name: move_unfence
-- Opens the database: drops the function and its triggers.
DROP FUNCTION carteiro.refuse_until_moved() CASCADE;
