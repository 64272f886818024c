-- Stores the send-rate records of tenants. :rows = [[tenant, next_token_us], …]
UPDATE tenants
SET next_token_us = r.value ->> 1
FROM json_each(:rows) AS r
WHERE tenants.id = r.value ->> 0;
