-- What the ledger knows of the messages. :ids = [id, …]
SELECT
    i.value, m.tenant, m.request_id, m.delivery, m.attempts, m.charged, m.in_doubt, m.revision, m.state,
    m.expires_at, m.recipient_id, c.content,
    r.id, r.tenant, r.email, r.external_id, r.cpf_cnpj_hash, r.razao_social, r.nome, r.created_at, r.deleted_at
FROM json_each(:ids) AS i
LEFT JOIN messages AS m ON m.id = i.value
LEFT JOIN contents AS c ON c.message_id = i.value
LEFT JOIN recipient_records AS r ON r.id = m.recipient_id;
