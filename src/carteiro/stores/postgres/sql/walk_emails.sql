-- E-mails of a tenant, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. $1 tenant; $2 since; $3, $4 the one; $5 limit
SELECT created_at, no
FROM carteiro.messages
WHERE
    kind = 'email:send'
    AND (tenant, created_at, no) >= ($1, $2::bigint, 0)
    AND (tenant, created_at, no) < ($1, $3::bigint, $4::bigint)
ORDER BY tenant DESC, created_at DESC, no DESC
LIMIT $5;
