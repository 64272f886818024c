-- name: inbox_keep
-- Stores mails: each row is one delivery. :rows = [[message id, tenant, to, subject, content, provider id], …]; :now =
-- time of the delivery, not of the acceptance; null: the server's time.
INSERT INTO carteiro.inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT m.message_id, m.tenant, m.to_address, m.subject, m.content, m.provider_id, coalesce(:now::bigint, carteiro.now_ms())
FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[])
    WITH ORDINALITY AS m (message_id, tenant, to_address, subject, content, provider_id, place)
ORDER BY m.place;
