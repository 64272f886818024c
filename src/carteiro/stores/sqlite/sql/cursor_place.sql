-- The number behind which a page starts: of the cursor's message or, if it was deleted, of the next by id at its time.
-- :at; :id; :tenant, null matches all
SELECT coalesce(
    (SELECT no FROM messages WHERE id = :id AND created_at = :at AND (:tenant IS NULL OR tenant = :tenant)),
    (
        SELECT 1 + max(no)
        FROM (
            SELECT no, id FROM messages INDEXED BY emails_of_tenant
            WHERE tenant = :tenant AND kind = 'email:send' AND created_at = :at
            UNION ALL
            SELECT no, id FROM messages INDEXED BY tasks_of_tenant
            WHERE tenant = :tenant AND kind <> 'email:send' AND created_at = :at
            UNION ALL
            SELECT no, id FROM messages INDEXED BY messages_by_age
            WHERE :tenant IS NULL AND created_at = :at
        )
        WHERE id < :id
    ),
    0
);
