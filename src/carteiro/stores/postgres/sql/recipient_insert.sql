-- Adds a recipient. $1 id; $2 email; $3 external_id; $4 cpf_cnpj_hash; $5 razao_social; $6 nome; $7 tenant; $8 now
INSERT INTO carteiro.recipient_records (
    id, email, external_id, cpf_cnpj_hash, razao_social, nome, tenant, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);
