-- The records of addresses. :tenant; :keys = [key, …]
SELECT s.key, s.reason, s.address, s.created_at, s.expires_at, s.is_active, s.bounces
FROM json_each(:keys) AS i CROSS JOIN suppressions AS s ON s.tenant = :tenant AND s.key = i.value;
