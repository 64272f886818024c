-- When these dead letters were moved here. :ids
SELECT message_id, moved_at
FROM dead_letters
WHERE message_id IN (SELECT value FROM json_each(:ids));
