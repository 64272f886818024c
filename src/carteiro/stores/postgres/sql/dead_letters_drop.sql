-- Takes dead letters out of the index, none that is on its way; how many. $1 = [id, …]
WITH mine AS (
    SELECT message_id FROM carteiro.dead_letters
    WHERE message_id = ANY ($1::text[]) AND redriven_at IS NULL
    ORDER BY message_id
    FOR UPDATE
),
dropped AS (
    DELETE FROM carteiro.dead_letters
    WHERE message_id = ANY (ARRAY(SELECT message_id FROM mine))
    RETURNING message_id
)
SELECT count(*) FROM dropped;
