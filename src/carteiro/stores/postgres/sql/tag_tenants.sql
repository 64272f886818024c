-- The tenants that have messages with a tag. $1 tag
SELECT t.id
FROM carteiro.tenants AS t
CROSS JOIN LATERAL (SELECT FROM carteiro.message_tags AS g WHERE g.tenant = t.id AND g.tag = $1 LIMIT 1) AS g;
