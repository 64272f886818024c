-- The claims that have an attempt under way. :leases = [[id, claim], …]
SELECT l.value ->> 0, l.value ->> 1
FROM json_each(:leases) AS l JOIN messages AS m ON m.id = l.value ->> 0
WHERE m.state = 'SENT_ATTEMPT' AND m.holder = l.value ->> 1;
