-- Adds the contents of new messages, which have consecutive numbers. Not in rows: a long text inside one is parsed twice.
-- :contents = [content, …]; :first
INSERT INTO contents (message_no, content)
SELECT :first + key, value
FROM json_each(:contents);
