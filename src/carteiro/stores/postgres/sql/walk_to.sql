-- Messages of tenants to an address, newest first, after a given one: each tenant's by themselves, by the whole key of
-- the index, so that no other index fits. $1 = [tenant, …]; $2 to; $3 since; $4, $5 the one; $6 limit
SELECT m.created_at, m.no
FROM unnest($1::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, no
    FROM carteiro.messages
    WHERE
        to_address IS NOT NULL
        AND (to_address, tenant, created_at, no) >= ($2, i.tenant, $3::bigint, 0)
        AND (to_address, tenant, created_at, no) < ($2, i.tenant, $4::bigint, $5::bigint)
    ORDER BY to_address DESC, tenant DESC, created_at DESC, no DESC
    LIMIT $6
) AS m
ORDER BY m.created_at DESC, m.no DESC
LIMIT $6;
