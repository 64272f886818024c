-- The next recipients, deleted ones included. :after = [id]
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records
WHERE id > (:after ->> 0)
ORDER BY id;
