-- What tenants handed in, in the latest window of each length. :tenants = [id, …]
SELECT c.tenant, c.window_ms, c.starts_at, c.count
FROM json_each(:tenants) AS i JOIN api_counts AS c ON c.tenant = i.value;
