-- A slot of these tenants became free: those with a cap are looked at again. :tenants = [id, …]; :now
UPDATE seats
SET wake_at = min(wake_at, :now)
WHERE wake_at IS NOT NULL AND tenant IN (
    SELECT t.id FROM json_each(:tenants) AS i JOIN tenants AS t ON t.id = i.value WHERE t.cap IS NOT NULL
);
