-- Messages that their sender calls so, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. $1; $2 since; $3, $4 the one; $5 limit
SELECT created_at, no
FROM carteiro.messages
WHERE
    external_id IS NOT NULL
    AND (external_id, created_at, no) >= ($1, $2::bigint, 0)
    AND (external_id, created_at, no) < ($1, $3::bigint, $4::bigint)
ORDER BY external_id DESC, created_at DESC, no DESC
LIMIT $5;
