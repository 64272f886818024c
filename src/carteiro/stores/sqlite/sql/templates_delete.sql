-- Takes a template out of use: its newest version says since when. :tenant; :type; :now
UPDATE templates
SET deleted_at = :now
WHERE
    tenant = :tenant AND type = :type AND deleted_at IS NULL
    AND version = (SELECT max(n.version) FROM templates AS n WHERE n.tenant = :tenant AND n.type = :type);
