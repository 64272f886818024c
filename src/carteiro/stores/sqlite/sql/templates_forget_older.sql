-- Drops all versions of templates but the newest of each. :tenant; :types = [type, …]
DELETE FROM templates
WHERE
    tenant = :tenant AND type IN (SELECT i.value FROM json_each(:types) AS i)
    AND version < (SELECT max(n.version) FROM templates AS n WHERE n.tenant = :tenant AND n.type = templates.type);
