-- name: rollup_put
-- Stores figures. :rows = [[span, tenant, template, provider, at, weight, figures], …]
INSERT INTO carteiro.rollups (span, tenant, template, provider, at, weight, figures)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::bigint[], :rows_5::bigint[],
    :rows_6::text[]
)
ON CONFLICT (span, tenant, template, provider, at) DO UPDATE
SET weight = excluded.weight, figures = excluded.figures;

-- name: rollup_rows
-- The known ones of these rows. :rows = [[span, tenant, template, provider, at], …]
SELECT r.span, r.tenant, r.template, r.provider, r.at, r.figures
FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::bigint[])
    AS i (span, tenant, template, provider, at)
CROSS JOIN LATERAL (
    SELECT * FROM carteiro.rollups AS f
    WHERE
        f.span = i.span AND f.tenant = i.tenant AND f.template = i.template AND f.provider = i.provider
        AND f.at = i.at
    OFFSET 0
) AS r;

-- name: rollup_tenants
-- The known ones of these tenants; none is erased before the transaction ends. :ids = [id, …]
SELECT id FROM carteiro.tenants
WHERE id = ANY (:ids::text[])
ORDER BY id
FOR KEY SHARE;
