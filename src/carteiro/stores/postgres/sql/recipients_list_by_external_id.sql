-- Recipients of a tenant that it calls so, newest first, after a given one.
-- $1 tenant; $2, $3 the row before; $4 limit; $5 external id
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE external_id = $5::text AND tenant = $1::text AND (created_at, id) < ($2::bigint, $3::text)
ORDER BY created_at DESC, id DESC
LIMIT $4::bigint;
