-- Gives send-rate tokens back. :rows = [[tenant, microseconds], …]
UPDATE tenants
SET next_token_us = next_token_us - (r.value ->> 1)
FROM json_each(:rows) AS r
WHERE tenants.id = r.value ->> 0;
