-- Adds a recipient. :id; :tenant; :email; :external_id; :cpf_cnpj_hash; :razao_social; :nome; :now
INSERT INTO recipient_records (
    id, tenant, email, external_id, cpf_cnpj_hash, razao_social, nome, created_at
)
VALUES (:id, :tenant, :email, :external_id, :cpf_cnpj_hash, :razao_social, :nome, :now);
