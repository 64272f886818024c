-- Drops the versions of a template up to one. :tenant; :type; :last = the newest that goes
DELETE FROM templates
WHERE tenant = :tenant AND type = :type AND version <= :last;
