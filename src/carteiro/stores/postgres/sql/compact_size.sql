-- How many bytes all tables take, with their indexes.
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
FROM pg_class
WHERE relnamespace = 'carteiro'::regnamespace AND relkind = 'r';
