-- Marks dead letters as on their way. $1 = [id, …]; $2 now
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY ($1::text[])
    ORDER BY message_id
    FOR UPDATE
)
UPDATE carteiro.dead_letters
SET redriven_at = $2
WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine));
