-- The id of a message. $1 number
SELECT id FROM carteiro.messages WHERE no = $1;
