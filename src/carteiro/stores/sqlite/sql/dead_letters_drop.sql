-- Takes dead letters out of the index, none that is on its way. :ids = [id, …]
DELETE FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids)) AND redriven_at IS NULL;
