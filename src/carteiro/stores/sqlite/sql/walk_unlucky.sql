-- Messages of a tenant that ended unsent or failed at least once, newest first, after a given one: one JSON list of
-- [created_at, number]. :tenant; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY messages_unlucky
    WHERE
        tenant = :tenant AND provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL)
        AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
