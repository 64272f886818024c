-- Messages of a tenant that ended unsent or failed at least once, newest first, after a given one: the whole key of the index
-- is compared and sorted by, so that no other index fits. $1 tenant; $2 since; $3, $4 the one; $5 limit
SELECT created_at, message_no
FROM carteiro.entries
WHERE
    provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL)
    AND (tenant, created_at, message_no) >= ($1, $2::bigint, 0)
    AND (tenant, created_at, message_no) < ($1, $3::bigint, $4::bigint)
ORDER BY tenant DESC, created_at DESC, message_no DESC
LIMIT $5;
