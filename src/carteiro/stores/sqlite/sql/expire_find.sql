-- Jobs whose time to live is over, oldest first, after a given one. :now; :expires_at, :id; :limit
SELECT id, expires_at
FROM jobs
WHERE expires_at <= :now AND (expires_at, id) > (:expires_at, :id)
ORDER BY expires_at, id
LIMIT :limit;
