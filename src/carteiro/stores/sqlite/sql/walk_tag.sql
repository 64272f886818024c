-- Messages of a tenant with a tag, newest first, after a given one: one JSON list of [created_at, number].
-- :tenant; :tag; :since; :at, :no; :limit
SELECT json_group_array(json_array(created_at, message_no))
FROM (
    SELECT created_at, message_no FROM message_tags
    WHERE
        tenant = :tenant AND tag = :tag AND created_at >= :since
        AND (created_at, message_no) < (:at, :no)
    ORDER BY created_at DESC, message_no DESC
    LIMIT :limit
);
