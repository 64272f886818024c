-- Drops recipients of a tenant. :tenant; :limit
DELETE FROM recipient_records
WHERE id IN (SELECT r.id FROM recipient_records AS r WHERE r.tenant = :tenant LIMIT :limit);
