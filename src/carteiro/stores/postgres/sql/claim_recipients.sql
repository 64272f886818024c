-- The recipients with these ids, deleted or not. $1 ids
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE id = ANY (ARRAY(SELECT unnest($1::text[])));
