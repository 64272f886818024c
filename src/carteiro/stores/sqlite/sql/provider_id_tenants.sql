-- The tenants with messages of this provider's id: goes from tenant to tenant in the index, past their messages. :provider_id
WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM messages INDEXED BY messages_by_provider_id WHERE provider_message_id = :provider_id AND provider_message_id <> ''
    UNION ALL
    SELECT (
        SELECT min(m.tenant) FROM messages AS m INDEXED BY messages_by_provider_id
        WHERE m.provider_message_id = :provider_id AND m.provider_message_id <> '' AND m.tenant > f.tenant
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;
