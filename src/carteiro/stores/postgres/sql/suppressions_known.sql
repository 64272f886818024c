-- The records of addresses. $1 tenant; $2 keys
SELECT s.key, s.reason, s.address, s.created_at, s.expires_at, s.is_active, s.bounces
FROM unnest($2::text[]) AS i (key)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.suppressions AS n WHERE n.tenant = $1::text AND n.key = i.key OFFSET 0
) AS s;
