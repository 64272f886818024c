-- As `walk_unfinished`, where jobs are kept elsewhere: looks at every unfinished message.
-- For ledgers of which `unfinished_messages` says that these are few. :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no
    FROM messages INDEXED BY messages_by_expiry
    WHERE finished_at IS NULL AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
