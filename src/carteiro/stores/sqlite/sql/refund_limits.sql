-- What was drawn from the send limits of kinds. :kinds = [kind, …]
SELECT kind, draws
FROM ring_clock
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND limit_count IS NOT NULL;
