-- The tenants that have messages with a tag. :tag
SELECT t.id FROM tenants AS t
WHERE EXISTS (SELECT 1 FROM message_tags AS g WHERE g.tenant = t.id AND g.tag = :tag);
