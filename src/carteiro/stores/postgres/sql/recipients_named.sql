-- The recipients that their tenant calls so, deleted ones included. $1 external id; $2 tenant, null matches all
SELECT id
FROM carteiro.recipient_records
WHERE external_id = $1 AND ($2::text IS NULL OR tenant = $2);
