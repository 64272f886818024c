-- Dead letters of all tenants for one reason, newest first, from the place where the page before ended;
-- null matches all. :kind; :reason; :code; :category; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id; :limit
SELECT d.message_id, d.moved_at
FROM dead_letters AS d
WHERE
    d.reason = :reason AND d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
ORDER BY d.moved_at DESC, d.message_id DESC
LIMIT :limit;
