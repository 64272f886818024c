-- Those of the messages whose contents are still there. $1 = [number, …]
SELECT message_no
FROM carteiro.contents
WHERE message_no = ANY (ARRAY(SELECT unnest($1::bigint[])));
