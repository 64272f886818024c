-- Drops templates with all their versions. :tenant; :types = [type, …]
DELETE FROM templates
WHERE tenant = :tenant AND type IN (SELECT value FROM json_each(:types));
