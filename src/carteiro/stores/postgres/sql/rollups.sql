-- name: rollup_put
-- Stores figures. :rows = [[span, tenant, template, provider, at, weight, sent, failed, figures], …]
INSERT INTO carteiro.rollups (span, tenant, template, provider, at, weight, sent, failed, figures)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::bigint[], :rows_5::bigint[],
    :rows_6::bigint[], :rows_7::bigint[], :rows_8::text[]
)
ON CONFLICT (span, tenant, template, provider, at) DO UPDATE
SET weight = excluded.weight, sent = excluded.sent, failed = excluded.failed, figures = excluded.figures;

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

-- name: rollup_trim_templates
-- Keeps the templates with the most messages: the first of each tenant, then the second of each. :span; :at; :most
DELETE FROM carteiro.rollups
WHERE
    span = :span AND at = :at AND template > ''
    AND (tenant, template) NOT IN (
        SELECT tenant, template FROM carteiro.rollups
        WHERE span = :span AND at = :at AND template > ''
        ORDER BY row_number() OVER (PARTITION BY tenant ORDER BY weight DESC, template), weight DESC, tenant
        LIMIT :most
    );

-- name: rollup_trim_tenants
-- Keeps the tenants with the most messages. :span; :at; :most
DELETE FROM carteiro.rollups
WHERE
    span = :span AND at = :at AND tenant > '' AND template = ''
    AND tenant NOT IN (
        SELECT tenant FROM carteiro.rollups
        WHERE span = :span AND at = :at AND tenant > '' AND template = ''
        ORDER BY weight DESC, tenant
        LIMIT :most
    );
