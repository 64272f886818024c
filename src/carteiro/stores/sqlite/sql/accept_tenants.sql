-- Those of the tenants that are known, and whether they are disabled. :ids = [id, …]
SELECT t.id, t.disabled
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;
