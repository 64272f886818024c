-- Those of the addresses that must not be written to. Arrays: $1 tenant; $2 key; and $3 now
SELECT i.tenant, i.key
FROM unnest($1::text[], $2::text[]) AS i (tenant, key)
CROSS JOIN LATERAL (
    SELECT FROM carteiro.suppressions AS s
    WHERE
        s.tenant = i.tenant AND s.key = i.key AND s.is_active
        AND (s.expires_at IS NULL OR s.expires_at > $3::bigint)
    LIMIT 1
) AS s;
