-- Takes over what was told anew of a recipient. :id; :email; :external_id; :cpf_cnpj_hash; :razao_social; :nome
UPDATE recipient_records
SET
    email = :email, external_id = coalesce(:external_id, external_id),
    cpf_cnpj_hash = coalesce(:cpf_cnpj_hash, cpf_cnpj_hash),
    razao_social = coalesce(:razao_social, razao_social), nome = coalesce(:nome, nome)
WHERE id = :id;
