-- Takes the records of addresses away. :tenant; :keys = [key, …]
DELETE FROM suppressions
WHERE tenant = :tenant AND key IN (SELECT i.value FROM json_each(:keys) AS i);
