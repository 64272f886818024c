-- The recipients with this external id, deleted ones included. :external_id; :tenant, null matches all
SELECT id FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND tenant = :tenant
UNION ALL
SELECT id FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND :tenant IS NULL;
