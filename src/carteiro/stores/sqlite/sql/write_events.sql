-- Adds events to timelines, in order. :rows = [[message id, type, metadata, created_at], …]
INSERT INTO events (message_id, type, metadata, created_at)
SELECT value ->> 0, value ->> 1, value -> 2, value ->> 3
FROM json_each(:rows);
