-- Sets the weight of a tier. $1 name; $2 weight
INSERT INTO carteiro.tiers (name, weight)
VALUES ($1::text, $2::double precision)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;
