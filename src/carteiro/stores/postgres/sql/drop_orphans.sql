-- Leased jobs that no message stands for any more, or none that is unfinished. $1 message numbers; $2 claim
WITH dropped AS (
    DELETE FROM carteiro.leased WHERE message_no = ANY ($1::bigint[]) AND claim_id = $2 RETURNING kind, tenant
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at)
SELECT kind, tenant, -count(*), 4611686018427387904 FROM dropped GROUP BY kind, tenant;
