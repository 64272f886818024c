-- Holds the entries of messages: nobody changes or prunes them until the transaction ends. $1 = [id, …]
SELECT FROM carteiro.entries
WHERE message_no = ANY (ARRAY(SELECT m.no FROM carteiro.messages AS m WHERE m.id = ANY (ARRAY(SELECT unnest($1::text[])))))
ORDER BY message_no
FOR UPDATE;
