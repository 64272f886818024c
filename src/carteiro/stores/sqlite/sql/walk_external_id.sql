-- Messages of a tenant with its own id for them, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :external_id; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY messages_by_external_id
    WHERE
        external_id = :external_id AND tenant = :tenant
        AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
