-- The recipient that a tenant means: by external id, else by document (one that has no other external id).
-- :tenant; :external_id; :cpf_cnpj_hash
SELECT id FROM recipient_records
WHERE tenant = :tenant AND external_id = :external_id AND deleted_at IS NULL
UNION ALL
SELECT id FROM recipient_records
WHERE
    tenant = :tenant AND cpf_cnpj_hash = :cpf_cnpj_hash AND deleted_at IS NULL
    AND (:external_id IS NULL OR external_id IS NULL)
LIMIT 1;
