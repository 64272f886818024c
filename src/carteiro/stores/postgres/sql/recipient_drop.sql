-- Takes a recipient away. $1 id
DELETE FROM carteiro.recipient_records
WHERE id = $1::text;
