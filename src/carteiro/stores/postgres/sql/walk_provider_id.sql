-- Messages of tenants with an id that a provider gave, newest first, after a given one: each tenant's by themselves, by the whole key of
-- the index, so that no other index fits. $1 = [tenant, …]; $2 provider's id; $3 since; $4, $5 the one; $6 limit
SELECT m.created_at, m.message_no
FROM unnest($1::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, message_no
    FROM carteiro.entries
    WHERE
        provider_message_id <> ''
        AND (provider_message_id, tenant, created_at, message_no) >= ($2, i.tenant, $3::bigint, 0)
        AND (provider_message_id, tenant, created_at, message_no) < ($2, i.tenant, $4::bigint, $5::bigint)
    ORDER BY provider_message_id DESC, tenant DESC, created_at DESC, message_no DESC
    LIMIT $6
) AS m
ORDER BY m.created_at DESC, m.message_no DESC
LIMIT $6;
