-- Marks a recipient as deleted if it is not, once whoever sends to it right now has done so. $1 id; $2 tenant; $3 now
UPDATE carteiro.recipient_records
SET deleted_at = coalesce(deleted_at, $3::bigint)
WHERE id = $1::text AND tenant = $2::text
RETURNING id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at;
