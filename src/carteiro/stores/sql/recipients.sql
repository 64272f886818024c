-- name: recipient
-- One recipient of a tenant. :id; :tenant
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE id = :id AND tenant = :tenant;

-- name: recipient_delete
-- Marks a recipient as deleted, unless it is. :id; :tenant; :now
UPDATE carteiro.recipient_records
SET deleted_at = :now
WHERE id = :id AND tenant = :tenant AND deleted_at IS NULL;

-- name: recipient_drop
-- Deletes a recipient. :id
DELETE FROM carteiro.recipient_records
WHERE id = :id;

-- name: recipient_insert
-- Adds a recipient. :id; :tenant; :email; :external_id; :cpf_cnpj_hash; :razao_social; :nome; :now
INSERT INTO carteiro.recipient_records (
    id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at
)
VALUES (:id, :tenant, :email, :external_id, :cpf_cnpj_hash, :razao_social, :nome, :now);

-- name: recipient_update
-- Updates a recipient. :id; :email; :external_id; :cpf_cnpj_hash; :razao_social; :nome
UPDATE carteiro.recipient_records
SET
    email = :email, external_id = coalesce(:external_id, external_id),
    cpf_cnpj_hash = coalesce(:cpf_cnpj_hash, cpf_cnpj_hash),
    razao_social = coalesce(:razao_social, razao_social), nome = coalesce(:nome, nome)
WHERE id = :id;

-- name: recipient_take
-- Marks a recipient as deleted unless it is; waits for transactions that are accepting messages to it. :id; :tenant; :now
UPDATE carteiro.recipient_records
SET deleted_at = coalesce(deleted_at, :now)
WHERE id = :id AND tenant = :tenant
RETURNING id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at;
