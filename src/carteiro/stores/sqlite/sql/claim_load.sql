-- What the ledger knows of the messages, in the order asked. :numbers = [message no, …]
SELECT
    m.tenant, m.request_id, m.delivery, m.attempts, m.charged, m.in_doubt, m.revision, m.state, m.expires_at,
    m.cancel_requested_at, m.recipient_id, m.template_type, m.provider, c.content,
    EXISTS (SELECT 1 FROM suppressions AS s WHERE s.tenant = m.tenant)
FROM json_each(:numbers) AS i
LEFT JOIN messages AS m ON m.no = i.value
LEFT JOIN contents AS c ON c.message_no = i.value;
