-- Takes a recipient away. :id
DELETE FROM recipient_records
WHERE id = :id;
