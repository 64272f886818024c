-- Keeps others away from the same keys, counts and recipients until the transaction ends. $1 numbers, sorted
SELECT pg_advisory_xact_lock(name) FROM unnest($1::bigint[]) AS name;
