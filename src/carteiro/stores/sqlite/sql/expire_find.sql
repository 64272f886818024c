-- Messages whose time to live is over, oldest first, after a given one. :now; :expires_at, :id; :limit
SELECT id, expires_at
FROM messages
WHERE finished_at IS NULL AND expires_at <= :now AND (expires_at, id) > (:expires_at, :id)
ORDER BY expires_at, id
LIMIT :limit;
