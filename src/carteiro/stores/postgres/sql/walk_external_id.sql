-- Messages of tenants with their own id for them, newest first, after a given one: each tenant's by themselves, by the whole key of
-- the index, so that no other index fits. $1 = [tenant, …]; $2 external id; $3 since; $4, $5 the one; $6 limit
SELECT m.created_at, m.no
FROM unnest($1::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, no
    FROM carteiro.messages
    WHERE
        external_id IS NOT NULL
        AND (external_id, tenant, created_at, no) >= ($2, i.tenant, $3::bigint, 0)
        AND (external_id, tenant, created_at, no) < ($2, i.tenant, $4::bigint, $5::bigint)
    ORDER BY external_id DESC, tenant DESC, created_at DESC, no DESC
    LIMIT $6
) AS m
ORDER BY m.created_at DESC, m.no DESC
LIMIT $6;
