-- Messages that may have an open attempt, for there is or was a claim on their job, newest first, after a given one:
-- one JSON list of [created_at, number]. :tenant, null matches all; :since; :at, :no; :limit
WITH wanted (id) AS MATERIALIZED (
    SELECT id FROM tenants WHERE id = :tenant
    UNION ALL
    SELECT id FROM tenants WHERE :tenant IS NULL
)
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT m.created_at, m.no
    FROM (
        SELECT r.message_no
        FROM wanted AS t CROSS JOIN ready AS r INDEXED BY ready_again ON r.tenant = t.id AND r.claims > 0
        UNION ALL
        SELECT p.message_no
        FROM wanted AS t
        CROSS JOIN parked AS p INDEXED BY parked_again ON p.tenant = t.id AND p.claims > 0 AND p.is_claimed = 0
        UNION ALL
        SELECT p.message_no
        FROM wanted AS t CROSS JOIN parked AS p ON p.tenant = t.id AND p.is_claimed = 1
    ) AS q CROSS JOIN messages AS m ON m.no = q.message_no
    WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
    ORDER BY m.created_at DESC, m.no DESC
    LIMIT :limit
);
