-- The tenants with messages of this provider's id: goes from tenant to tenant in the index, past their messages. $1 provider's id
WITH RECURSIVE found (tenant) AS (
    (
        SELECT tenant FROM carteiro.entries
        WHERE provider_message_id <> '' AND provider_message_id = $1::text
        ORDER BY provider_message_id, tenant
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.tenant FROM carteiro.entries AS m
        WHERE m.provider_message_id <> '' AND m.provider_message_id = $1::text AND m.tenant > f.tenant
        ORDER BY m.provider_message_id, m.tenant
        LIMIT 1
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;
