-- The weights of tiers. $1 names
SELECT name, weight FROM carteiro.tiers
WHERE name = ANY ($1::text[]);
