-- Recipients of a tenant with this address, newest first, after a given one; null matches all.
-- :tenant; :email; :external_id; :at, :id; :limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records INDEXED BY recipients_by_email
WHERE
    tenant = :tenant AND email = :email AND (created_at, id) < (:at, :id)
    AND (:external_id IS NULL OR external_id = :external_id)
ORDER BY created_at DESC, id DESC
LIMIT :limit;
