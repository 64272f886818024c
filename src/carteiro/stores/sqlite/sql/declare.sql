-- Stores declared attempts. :rows = [[message no, attempts, in_doubt, holder, held_until, provider], …]
UPDATE messages
SET
    state = 'SENT_ATTEMPT', attempts = r.value ->> 1, in_doubt = r.value ->> 2, holder = r.value ->> 3,
    held_until = r.value ->> 4, provider = r.value ->> 5
FROM json_each(:rows) AS r
WHERE messages.no = r.value ->> 0;
