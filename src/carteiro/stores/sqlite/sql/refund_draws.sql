-- Stores what is drawn from the send limits of kinds. :rows = [[kind, draws], …]
UPDATE ring_clock
SET draws = r.value ->> 1
FROM json_each(:rows) AS r
WHERE ring_clock.kind = r.value ->> 0;
