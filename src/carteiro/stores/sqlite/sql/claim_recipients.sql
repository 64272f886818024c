-- The recipients with these ids, deleted or not. :ids = [id, …]
SELECT
    r.id, r.tenant, r.email, r.external_id, r.cpf_cnpj_hash, r.razao_social, r.nome, r.created_at, r.deleted_at
FROM json_each(:ids) AS i JOIN recipient_records AS r ON r.id = i.value;
