-- name: claim
-- Leases ready jobs: see the function of that name.
SELECT c.o_now, c.o_idle_ms, c.o_numbers::text, c.o_claims, c.o_tenants, c.o_presets::text, c.o_messages
FROM carteiro.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS c;

-- name: claim_recipients
-- The recipients with these ids, deleted or not. :ids
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE id = ANY (ARRAY(SELECT unnest(:ids::text[])));

-- name: claimed
-- The claimed messages: see the function of that name. $1 numbers, in one text; $2 tenants, each once
SELECT * FROM carteiro.claimed($1::text::bigint[], $2);

-- name: undo_claims
-- Releases all jobs of claims: see the function of that name. $1 claims; $2 now
SELECT carteiro.undo_claims($1, $2);
