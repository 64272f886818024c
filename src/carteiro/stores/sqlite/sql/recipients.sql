-- name: recipients_list
-- Recipients of a tenant, newest first, after a given one. :tenant; :at, :id; :limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records INDEXED BY recipients_by_age
WHERE tenant = :tenant AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: recipients_list_by_email
-- Recipients of a tenant with this address, newest first, after a given one; null matches all.
-- :tenant; :email; :external_id; :at, :id; :limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records INDEXED BY recipients_by_email
WHERE
    tenant = :tenant AND email = :email AND (created_at, id) < (:at, :id)
    AND (:external_id IS NULL OR external_id = :external_id)
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: recipients_list_by_external_id
-- Recipients of a tenant with this external id, newest first, after a given one.
-- :tenant; :external_id; :at, :id; :limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND tenant = :tenant AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: recipients_named
-- The recipients with this external id, deleted ones included. :external_id; :tenant, null matches all
SELECT id FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND tenant = :tenant
UNION ALL
SELECT id FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND :tenant IS NULL;
