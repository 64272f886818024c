-- The tenants with messages of this external id: goes from tenant to tenant in the index, past their messages. $1 external id
WITH RECURSIVE found (tenant) AS (
    (
        SELECT tenant FROM carteiro.messages
        WHERE external_id IS NOT NULL AND external_id = $1::text
        ORDER BY external_id, tenant
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.tenant FROM carteiro.messages AS m
        WHERE m.external_id IS NOT NULL AND m.external_id = $1::text AND m.tenant > f.tenant
        ORDER BY m.external_id, m.tenant
        LIMIT 1
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;
