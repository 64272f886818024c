-- The recipients with this external id, deleted ones included. $1 external id; $2 tenant, null matches all
SELECT id FROM carteiro.recipient_records WHERE external_id = $1::text AND tenant = $2::text
UNION ALL
SELECT id FROM carteiro.recipient_records WHERE external_id = $1::text AND $2::text IS NULL;
