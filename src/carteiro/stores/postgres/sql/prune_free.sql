-- Those of the messages that are no dead letters, with their ids. $1 = [number, …]
SELECT m.no, m.id
FROM carteiro.messages AS m
WHERE
    m.no = ANY ($1::bigint[])
    AND NOT EXISTS (SELECT FROM carteiro.dead_letters AS d WHERE d.message_id = m.id OFFSET 0);
