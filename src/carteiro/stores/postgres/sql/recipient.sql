-- One recipient of a tenant. $1 id; $2 tenant
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE id = $1::text AND tenant = $2::text;
