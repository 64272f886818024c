-- How many jobs there are, those included that only notes tell of. $1 tenant, null matches all
SELECT coalesce(sum(jobs), 0)::bigint
FROM carteiro.seats_and_notes
WHERE $1::text IS NULL OR tenant = $1;
