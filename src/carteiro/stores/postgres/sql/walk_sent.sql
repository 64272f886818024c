-- E-mails of a tenant that were sent, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. $1 tenant; $2 since; $3, $4 the one; $5 limit
SELECT created_at, message_no
FROM carteiro.entries
WHERE
    provider_message_id IS NOT NULL AND is_email
    AND (tenant, created_at, message_no) >= ($1, $2::bigint, 0)
    AND (tenant, created_at, message_no) < ($1, $3::bigint, $4::bigint)
ORDER BY tenant DESC, created_at DESC, message_no DESC
LIMIT $5;
