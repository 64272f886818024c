-- The number of the next new message; nobody else can take it in this transaction.
SELECT coalesce(max(no), 0) + 1
FROM messages;
