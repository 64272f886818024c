-- Writes the pace of a provider. $1 provider; $2 ceiling; $3 cut_to; $4 peak; $5 cut_at_us; $6 next_us; $7 stays; $8 trouble
UPDATE carteiro.rates
SET
    ceiling = $2::float8, cut_to = $3::float8, peak = $4::float8, cut_at_us = $5::bigint, next_us = $6::bigint,
    stays = $7::text, trouble = $8::text
WHERE provider = $1::text;
