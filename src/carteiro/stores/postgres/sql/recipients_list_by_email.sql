-- Recipients of a tenant with this address, newest first, after a given one.
-- $1 tenant; $2, $3 the row before; $4 limit; $5 email; $6 external id, null matches all
SELECT id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at, deleted_at
FROM carteiro.recipient_records
WHERE
    tenant = $1::text AND email = $5::text AND (created_at, id) < ($2::bigint, $3::text)
    AND ($6::text IS NULL OR external_id = $6::text)
ORDER BY created_at DESC, id DESC
LIMIT $4::bigint;
