-- When these dead letters were moved here. $1 ids
SELECT message_id, moved_at
FROM carteiro.dead_letters
WHERE message_id = ANY ($1::text[]);
