-- The tenants with messages to an address: goes from tenant to tenant in the index, past their messages. :to
WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM messages INDEXED BY messages_to WHERE to_address = :to
    UNION ALL
    SELECT (
        SELECT min(m.tenant) FROM messages AS m INDEXED BY messages_to
        WHERE m.to_address = :to AND m.tenant > f.tenant
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;
