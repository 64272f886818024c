-- Marks a recipient as deleted, unless it is. :id; :tenant; :now
UPDATE recipient_records
SET deleted_at = :now
WHERE id = :id AND tenant = :tenant AND deleted_at IS NULL;
