-- The hold of a declared attempt replaces the lease. :rows = [[id, held_until], …]
UPDATE parked
SET parked_until = r.value ->> 1
FROM json_each(:rows) AS r
WHERE parked.id = r.value ->> 0;
