-- Puts dead letters back whose messages are still dead, and have none; how many. The entries are held meanwhile: what is
-- redriven or pruned now either was before, or finds its dead letter.
-- Arrays: $1 message ids; $2 tenants; $3 reasons; $4 codes; $5 categories; $6 failures; $7 failed attempts; $8 failed_at;
-- $9 enqueued_at; $10 moved_at; $11 ttl_ms
WITH told AS (
    SELECT DISTINCT ON (r.id) r.*
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::json[], $7::integer[], $8::bigint[], $9::bigint[],
        $10::bigint[], $11::bigint[]
    ) AS r (id, tenant, reason, code, category, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms)
),
dead AS (
    SELECT m.no, m.kind, r.*
    FROM told AS r
    JOIN carteiro.messages AS m ON m.id = r.id AND m.tenant = r.tenant
    JOIN carteiro.entries AS e ON e.message_no = m.no AND e.state IN ('FAILED', 'EXPIRED')
    ORDER BY m.no
    FOR UPDATE OF e
),
restored AS (
    INSERT INTO carteiro.dead_letters (
        message_id, message_no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at,
        moved_at, ttl_ms
    )
    SELECT
        id, no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms
    FROM dead
    ON CONFLICT (message_id) DO NOTHING
    RETURNING message_id
)
SELECT count(*) FROM restored;
