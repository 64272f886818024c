-- Recipients of a tenant, newest first, after a given one. :tenant; :at, :id; :limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records INDEXED BY recipients_by_age
WHERE tenant = :tenant AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC
LIMIT :limit;
