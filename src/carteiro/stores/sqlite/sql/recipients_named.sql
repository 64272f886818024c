-- The recipients that their tenant calls so, deleted ones included. :external_id; :tenant, null matches all
SELECT id FROM recipient_records INDEXED BY recipients_named
WHERE external_id = :external_id AND (:tenant IS NULL OR tenant = :tenant);
