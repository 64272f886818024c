-- The next contents. :after = [message no]
SELECT message_no, content FROM contents WHERE message_no > (:after ->> 0) ORDER BY message_no;
