-- name: claim
-- Leases ready jobs: see the function of that name.
SELECT * FROM carteiro.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: claim_recipients
-- The recipients with these ids, deleted or not. :ids
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE id = ANY (ARRAY(SELECT unnest(:ids::text[])));

-- name: claimed
-- Fields and content of claimed messages: see the function of that name; then whether their tenant has suppressions.
-- $1 numbers; $2 tenants, each once
SELECT
    c.*,
    c.o_tenant = ANY (ARRAY(
        SELECT t.id
        FROM unnest($2::text[]) AS t (id)
        CROSS JOIN LATERAL (
            SELECT FROM carteiro.suppressions AS s WHERE s.tenant = t.id
            ORDER BY s.tenant, s.key, s.reason LIMIT 1 -- so that no table is scanned for tenants that have none
        ) AS s
    ))
FROM carteiro.claimed($1) AS c;

-- name: undo_claims
-- Releases all jobs of claims: see the function of that name. $1 claims; $2 now
SELECT carteiro.undo_claims($1, $2);
