-- The clock stepped back: noted, so that the next claim does not find it again. :kinds = [kind, …]; :now
UPDATE ring_clock
SET seen_at = :now
WHERE kind IN (SELECT value FROM json_each(:kinds));
