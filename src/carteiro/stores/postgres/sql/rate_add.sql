-- Adds the pace of a provider, unless it is known. $1 provider; $2 ceiling; $3 cut_to; $4 peak; $5 cut_at_us; $6 next_us; $7 stays; $8 trouble
INSERT INTO carteiro.rates (provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble)
VALUES ($1::text, $2::float8, $3::float8, $4::float8, $5::bigint, $6::bigint, $7::text, $8::text)
ON CONFLICT (provider) DO NOTHING;
