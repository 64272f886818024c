-- All messages, newest first, after a given one: one JSON list of [created_at, number].
-- :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY messages_by_age
    WHERE created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
