-- name: redrives_drop
-- Deletes items of a redrive. :id; :limit
DELETE FROM redrive_items
WHERE (redrive, message_id) IN (
    SELECT i.redrive, i.message_id FROM redrive_items AS i WHERE i.redrive = :id LIMIT :limit
);

-- name: redrives_judge
-- Stores results of items. :id; :rows = [[message id, result], …]
UPDATE redrive_items
SET result = r.result
FROM (SELECT value ->> 0 AS message_id, value ->> 1 AS result FROM json_each(:rows)) AS r
WHERE redrive_items.redrive = :id AND redrive_items.message_id = r.message_id;

-- name: redrives_known
-- Those of the messages that the redrive has. :id; :ids = [message id, …]
SELECT message_id FROM redrive_items
WHERE redrive = :id AND message_id IN (SELECT value FROM json_each(:ids));

-- name: redrives_put
-- Adds items. :id; :ids = [message id, …]; :run; :now
INSERT INTO redrive_items (redrive, message_id, run, at)
SELECT :id, value, :run, :now FROM json_each(:ids);

-- name: redrives_take
-- One redrive, which nobody else changes until the transaction ends. :id
SELECT {redrive} FROM redrives WHERE id = :id;
