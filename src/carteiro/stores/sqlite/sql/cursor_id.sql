-- The id of a message. :no
SELECT id FROM messages WHERE no = :no;
