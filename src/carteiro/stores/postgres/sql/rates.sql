-- name: rate_add
-- Adds the pace of a provider, unless it is known. $1 provider; $2 ceiling; $3 cut_to; $4 peak; $5 cut_at_us; $6 next_us; $7 stays; $8 trouble
INSERT INTO carteiro.rates (provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble)
VALUES ($1::text, $2::float8, $3::float8, $4::float8, $5::bigint, $6::bigint, $7::text, $8::text)
ON CONFLICT (provider) DO NOTHING;

-- name: rate_lock
-- The pace of one provider, locked; what follows need not reach the disk: a lost draw is harmless. $1 provider
SELECT
    provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble,
    set_config('synchronous_commit', 'off', true)
FROM carteiro.rates
WHERE provider = $1::text
FOR UPDATE;

-- name: rate_put
-- Writes the pace of a provider. $1 provider; $2 ceiling; $3 cut_to; $4 peak; $5 cut_at_us; $6 next_us; $7 stays; $8 trouble
UPDATE carteiro.rates
SET
    ceiling = $2::float8, cut_to = $3::float8, peak = $4::float8, cut_at_us = $5::bigint, next_us = $6::bigint,
    stays = $7::text, trouble = $8::text
WHERE provider = $1::text;

-- name: rates_list
-- The pace of every provider, by name.
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM carteiro.rates ORDER BY provider;
