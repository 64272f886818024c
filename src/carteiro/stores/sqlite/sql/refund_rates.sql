-- The send rates of tenants. :ids = [id, …]
SELECT t.id, t.rate_per_second
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;
