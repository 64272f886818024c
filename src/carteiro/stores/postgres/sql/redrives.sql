-- name: redrives_drop
-- Deletes items of a redrive. :id; :limit
DELETE FROM carteiro.redrive_items
WHERE ctid = ANY (ARRAY(SELECT i.ctid FROM carteiro.redrive_items AS i WHERE i.redrive = :id LIMIT :limit));

-- name: redrives_judge
-- Stores results of items. :id; :rows = [[message id, result], …]
UPDATE carteiro.redrive_items AS i
SET result = r.result
FROM unnest(:rows_0::text[], :rows_1::text[]) AS r (message_id, result)
WHERE i.redrive = :id AND i.message_id = r.message_id;

-- name: redrives_known
-- Those of the messages that the redrive has. :id; :ids = [message id, …]
SELECT message_id FROM carteiro.redrive_items
WHERE redrive = :id AND message_id = ANY (:ids::text[]);

-- name: redrives_put
-- Adds items. :id; :ids = [message id, …]; :run; :now
INSERT INTO carteiro.redrive_items (redrive, message_id, run, at)
SELECT :id::text, i.id, :run::integer, :now::bigint FROM unnest(:ids::text[]) AS i (id);

-- name: redrives_take
-- One redrive, which nobody else changes until the transaction ends. :id
SELECT {redrive} FROM carteiro.redrives WHERE id = :id FOR UPDATE;
