-- Marks a recipient as deleted, unless it is. $1 id; $2 tenant; $3 now
UPDATE carteiro.recipient_records
SET deleted_at = $3::bigint
WHERE id = $1::text AND tenant = $2::text AND deleted_at IS NULL
RETURNING id;
