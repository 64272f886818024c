-- The tenants that have messages with a tag. :tag; :tenant, null matches all
SELECT t.id FROM tenants AS t
WHERE
    (:tenant IS NULL OR t.id = :tenant)
    AND EXISTS (SELECT 1 FROM message_tags AS g WHERE g.tenant = t.id AND g.tag = :tag);
