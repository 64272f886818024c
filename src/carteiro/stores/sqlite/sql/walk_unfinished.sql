-- Messages that have a job, newest first, after a given one: one JSON list of [created_at, number]. Looks at every job:
-- for queues of which `unfinished` says that they are short. :tenant, null matches all; :since; :at, :no; :limit
WITH wanted (tenant, kind) AS MATERIALIZED (
    SELECT tenant, kind FROM seats WHERE tenant = :tenant
    UNION ALL
    SELECT tenant, kind FROM seats WHERE :tenant IS NULL
)
SELECT json_group_array(json_array(created_at, no))
FROM (
    SELECT m.created_at, m.no
    FROM (
        SELECT r.message_no
        FROM wanted AS s CROSS JOIN ready AS r ON r.tenant = s.tenant AND r.kind = s.kind
        UNION ALL
        SELECT p.message_no
        FROM wanted AS s CROSS JOIN parked AS p ON p.tenant = s.tenant AND p.is_claimed IN (0, 1) AND p.kind = s.kind
    ) AS q CROSS JOIN messages AS m ON m.no = q.message_no
    WHERE m.created_at >= :since AND (m.created_at, m.no) < (:at, :no)
    ORDER BY m.created_at DESC, m.no DESC
    LIMIT :limit
);
