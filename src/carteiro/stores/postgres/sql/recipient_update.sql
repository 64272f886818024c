-- Takes over what was told anew of a recipient. $1 id; $2 email; $3 external_id; $4 cpf_cnpj_hash; $5 razao_social; $6 nome
UPDATE carteiro.recipient_records
SET
    email = $2, external_id = coalesce($3, external_id), cpf_cnpj_hash = coalesce($4, cpf_cnpj_hash),
    razao_social = coalesce($5, razao_social), nome = coalesce($6, nome)
WHERE id = $1;
