-- name: recipient
-- One recipient of a tenant. $1 id; $2 tenant
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE id = $1::text AND tenant = $2::text;

-- name: recipient_delete
-- Marks a recipient as deleted, unless it is. $1 id; $2 tenant; $3 now
UPDATE carteiro.recipient_records
SET deleted_at = $3::bigint
WHERE id = $1::text AND tenant = $2::text AND deleted_at IS NULL
RETURNING id;

-- name: recipient_take
-- Marks a recipient as deleted if it is not, once whoever sends to it right now has done so. $1 id; $2 tenant; $3 now
UPDATE carteiro.recipient_records
SET deleted_at = coalesce(deleted_at, $3::bigint)
WHERE id = $1::text AND tenant = $2::text
RETURNING id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at;

-- name: recipients_list
-- Recipients of a tenant, newest first, after a given one. $1 tenant; $2, $3 the row before; $4 limit
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE tenant = $1::text AND (created_at, id) < ($2::bigint, $3::text)
ORDER BY created_at DESC, id DESC
LIMIT $4::bigint;

-- name: recipients_list_by_email
-- Recipients of a tenant with this address, newest first, after a given one.
-- $1 tenant; $2, $3 the row before; $4 limit; $5 email; $6 external id, null matches all
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE
    tenant = $1::text AND email = $5::text AND (created_at, id) < ($2::bigint, $3::text)
    AND ($6::text IS NULL OR external_id = $6::text)
ORDER BY created_at DESC, id DESC
LIMIT $4::bigint;

-- name: recipients_list_by_external_id
-- Recipients of a tenant that it calls so, newest first, after a given one.
-- $1 tenant; $2, $3 the row before; $4 limit; $5 external id
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE external_id = $5::text AND tenant = $1::text AND (created_at, id) < ($2::bigint, $3::text)
ORDER BY created_at DESC, id DESC
LIMIT $4::bigint;

-- name: recipients_named
-- The recipients with this external id, deleted ones included. $1 external id; $2 tenant, null matches all
SELECT id FROM carteiro.recipient_records WHERE external_id = $1::text AND tenant = $2::text
UNION ALL
SELECT id FROM carteiro.recipient_records WHERE external_id = $1::text AND $2::text IS NULL;
