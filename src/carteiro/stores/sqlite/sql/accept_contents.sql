-- Adds the content of a new message. Message no, content
INSERT INTO contents (message_no, content)
VALUES (?, ?);
