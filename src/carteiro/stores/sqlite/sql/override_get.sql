-- A setting changed at run time. :name
SELECT setting FROM overrides
WHERE name = :name;
