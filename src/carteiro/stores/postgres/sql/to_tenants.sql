-- The tenants with messages to an address: goes from tenant to tenant in the index, past their messages. $1 to
WITH RECURSIVE found (tenant) AS (
    (
        SELECT tenant FROM carteiro.messages
        WHERE to_address IS NOT NULL AND to_address = $1::text
        ORDER BY to_address, tenant
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.tenant FROM carteiro.messages AS m
        WHERE m.to_address IS NOT NULL AND m.to_address = $1::text AND m.tenant > f.tenant
        ORDER BY m.to_address, m.tenant
        LIMIT 1
    )
    FROM found AS f
    WHERE f.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL;
