-- The tenants with messages of this external id: goes from tenant to tenant in the index, past their messages. :external_id
WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM messages INDEXED BY messages_by_external_id WHERE external_id = :external_id
    UNION ALL
    SELECT (
        SELECT min(m.tenant) FROM messages AS m INDEXED BY messages_by_external_id
        WHERE m.external_id = :external_id AND m.tenant > f.tenant
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;
