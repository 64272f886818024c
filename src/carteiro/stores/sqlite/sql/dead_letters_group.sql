-- How many dead letters have :by (code, tenant, reason or category) in common, the largest group first;
-- null matches all. :tenant; :kind; :reason; :code; :category; :is_redriven; :text, in lower case; :moved_after;
-- :before_at and :before_id
SELECT
    CASE :by WHEN 'code' THEN d.code WHEN 'tenant' THEN d.tenant WHEN 'reason' THEN d.reason ELSE d.category END AS key,
    count(*), min(d.moved_at), max(d.moved_at)
FROM dead_letters AS d
WHERE
    d.moved_at >= :moved_after AND (d.moved_at, d.message_id) < (:before_at, :before_id)
    AND (:tenant IS NULL OR d.tenant = :tenant)
    AND (:kind IS NULL OR d.kind = :kind)
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:code IS NULL OR d.code = :code)
    AND (:category IS NULL OR d.category = :category)
    AND (:is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = :is_redriven)
    AND (
        :text IS NULL OR instr(lower(d.code), :text) OR instr(lower(d.failure ->> 'reason'), :text)
        OR instr(lower((SELECT m.to_address FROM messages AS m WHERE m.id = d.message_id)), :text)
    )
GROUP BY key
ORDER BY count(*) DESC, key;
