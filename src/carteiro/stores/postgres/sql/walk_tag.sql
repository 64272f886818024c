-- Messages of tenants with a tag, newest first, after a given one: each tenant's by themselves, by the whole key of the
-- index. $1 = [tenant, …]; $2 tag; $3 since; $4, $5 the one; $6 limit
SELECT g.created_at, g.message_no
FROM unnest($1::text[]) AS i (tenant)
CROSS JOIN LATERAL (
    SELECT created_at, message_no
    FROM carteiro.message_tags
    WHERE
        (tenant, tag, created_at, message_no) >= (i.tenant, $2, $3::bigint, 0)
        AND (tenant, tag, created_at, message_no) < (i.tenant, $2, $4::bigint, $5::bigint)
    ORDER BY tenant DESC, tag DESC, created_at DESC, message_no DESC
    LIMIT $6
) AS g
ORDER BY g.created_at DESC, g.message_no DESC
LIMIT $6;
