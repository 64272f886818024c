-- The recipient that a tenant means: by external id, else by document (one that has no other external id).
-- $1 tenant; $2 external_id; $3 cpf_cnpj_hash
(
    SELECT id FROM carteiro.recipient_records
    WHERE tenant = $1 AND external_id = $2 AND deleted_at IS NULL
)
UNION ALL
(
    SELECT id FROM carteiro.recipient_records
    WHERE
        tenant = $1 AND cpf_cnpj_hash = $3 AND deleted_at IS NULL
        AND ($2::text IS NULL OR external_id IS NULL)
    ORDER BY id
    LIMIT 1
)
LIMIT 1;
