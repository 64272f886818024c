-- The tenants that have messages with a tag. $1 tag; $2 tenant, null matches all
SELECT t.id
FROM carteiro.tenants AS t
CROSS JOIN LATERAL (SELECT FROM carteiro.message_tags AS g WHERE g.tenant = t.id AND g.tag = $1 LIMIT 1) AS g
WHERE $2::text IS NULL OR t.id = $2;
