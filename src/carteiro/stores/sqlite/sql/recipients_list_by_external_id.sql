-- Recipients of a tenant that it calls so, newest first, after a given one.
-- :tenant; :external_id; :at, :id; :limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND tenant = :tenant AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC
LIMIT :limit;
