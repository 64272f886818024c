-- A setting changed at run time. $1 name
SELECT setting FROM carteiro.overrides
WHERE name = $1::text;
