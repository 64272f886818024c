-- As `walk_unfinished`, where jobs are kept elsewhere: looks at every unfinished message.
-- :tenant, null matches all; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no
    FROM messages INDEXED BY messages_by_expiry
    WHERE
        finished_at IS NULL AND (:tenant IS NULL OR tenant = :tenant)
        AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
