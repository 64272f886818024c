-- Applies requested numbers of retries. $1 = [change, …]
WITH taken AS (
    DELETE FROM carteiro.queue_changes WHERE no = ANY ($1::bigint[]) RETURNING message_no, number
),
shown AS (
    UPDATE carteiro.queue_rows AS q SET max_retries = t.number
    FROM taken AS t
    WHERE q.message_no = t.message_no
)
UPDATE carteiro.contents AS c
SET content = regexp_replace(c.content, '^\{"maxRetries":\d+', '{"maxRetries":' || t.number)
FROM taken AS t
WHERE c.message_no = t.message_no;
