-- The clock stepped back: alarms mean nothing, every seat is looked at again. :kinds = [kind, …]; :now
UPDATE seats
SET wake_at = :now
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND wake_at IS NOT NULL;
