-- Messages of a tenant to an address, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :to; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY messages_to
    WHERE
        to_address = :to AND tenant = :tenant
        AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
