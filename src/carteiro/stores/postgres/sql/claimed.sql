-- What claimed messages are and say: see the function of that name; then whether their tenant has suppressions.
-- $1 numbers; $2 tenants, each once
SELECT
    c.*,
    c.o_tenant = ANY (ARRAY(
        SELECT t.id
        FROM unnest($2::text[]) AS t (id)
        CROSS JOIN LATERAL (
            SELECT FROM carteiro.suppressions AS s WHERE s.tenant = t.id
            ORDER BY s.tenant, s.key, s.reason LIMIT 1 -- so that no table is walked for tenants that have none
        ) AS s
    ))
FROM carteiro.claimed($1) AS c;
