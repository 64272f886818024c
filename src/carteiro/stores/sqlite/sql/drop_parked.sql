-- Jobs that are parked no longer: finished, or ready. :ids = [id, …]
DELETE FROM parked
WHERE id IN (SELECT value FROM json_each(:ids));
