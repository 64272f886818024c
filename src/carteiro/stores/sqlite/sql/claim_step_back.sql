-- The clock stepped back: noted, so that the next claim does not find it again. :rows = [[kind, draws], …]; :now
UPDATE ring_clock
SET seen_at = :now, draws = r.value ->> 1
FROM json_each(:rows) AS r
WHERE ring_clock.kind = r.value ->> 0;
