-- Keeps others away from the same keys, counts and recipients until the transaction ends. $1 numbers, sorted
INSERT INTO carteiro.door_locks (name)
SELECT name FROM unnest($1::bigint[]) AS name
ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE false; -- locks the row, and changes nothing
