-- One recipient of a tenant. :id; :tenant
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records
WHERE id = :id AND tenant = :tenant;
