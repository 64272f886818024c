-- The tenants with these ids. :ids = [id, …]
SELECT t.id, t.name, t.tier, t.weight, t.cap, t.rate_per_second, t.paused
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;
