-- The number behind which a page starts: of the cursor's message or, if it was deleted, of the next by id at its time.
-- $1 time; $2 id; $3 tenant, null matches all
SELECT coalesce(
    (SELECT no FROM carteiro.messages WHERE id = $2 AND created_at = $1 AND ($3::text IS NULL OR tenant = $3)),
    (
        SELECT 1 + max(no)
        FROM (
            SELECT no, id FROM carteiro.messages WHERE tenant = $3 AND kind = 'email:send' AND created_at = $1
            UNION ALL
            SELECT no, id FROM carteiro.messages WHERE tenant = $3 AND kind <> 'email:send' AND created_at = $1
            UNION ALL
            SELECT no, id FROM carteiro.messages WHERE $3 IS NULL AND created_at = $1
        ) AS m
        WHERE id < $2
    ),
    0
);
