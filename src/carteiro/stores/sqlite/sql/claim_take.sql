-- Leased jobs wait no longer. Their keys are read from where `claim_lease` put them: values of a JSON list are not
-- known to be text or numbers, and SQLite would search by the first part of the key alone. :ids = [id, …]
DELETE FROM ready
WHERE (tenant, kind, priority, due_at, id) IN (
    SELECT tenant, kind, priority, due_at, id FROM parked WHERE id IN (SELECT value FROM json_each(:ids))
);
