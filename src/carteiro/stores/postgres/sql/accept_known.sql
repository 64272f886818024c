-- Those of the ids that are accepted already. $1 ids
SELECT id, created_at, recipient_id, request_id FROM carteiro.messages WHERE id = ANY (ARRAY(SELECT unnest($1::text[])));
