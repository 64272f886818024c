-- Goes back to the configured setting. $1 name
DELETE FROM carteiro.overrides
WHERE name = $1::text;
