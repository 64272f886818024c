-- Those of the ids whose message is not finished. $1 = [id, …]
SELECT m.id
FROM unnest($1::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT n.id, n.no FROM carteiro.messages AS n WHERE n.id = i.id LIMIT 1) AS m
CROSS JOIN LATERAL (
    SELECT FROM carteiro.entries AS n WHERE n.message_no = m.no AND n.finished_at IS NULL LIMIT 1
) AS e;
