-- Messages of a tenant with an id that a provider gave, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :provider_id; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT created_at, no FROM messages INDEXED BY messages_by_provider_id
    WHERE
        provider_message_id = :provider_id AND provider_message_id <> '' AND tenant = :tenant
        AND created_at >= :since AND (created_at, no) < (:at, :no)
    ORDER BY created_at DESC, no DESC
    LIMIT :limit
);
