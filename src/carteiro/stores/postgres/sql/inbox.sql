-- name: inbox_keep
-- Takes mails over: each row is one delivery. :rows = [[message id, tenant, to, subject, content, provider id], …]; :now, if
-- it is not the server's own: when they are taken over, not when they were handed in.
INSERT INTO carteiro.inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT m.message_id, m.tenant, m.to_address, m.subject, m.content, m.provider_id, coalesce(:now::bigint, carteiro.now_ms())
FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[])
    WITH ORDINALITY AS m (message_id, tenant, to_address, subject, content, provider_id, place)
ORDER BY m.place;
