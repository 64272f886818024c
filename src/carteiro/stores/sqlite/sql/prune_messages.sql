-- Drops messages from the ledger. :ids = [id, …]
DELETE FROM messages
WHERE id IN (SELECT value FROM json_each(:ids));
