-- name: rate_add
-- Adds the rate of a provider, unless it is known.
-- :provider; :ceiling; :cut_to; :peak; :cut_at_us; :next_us; :stays; :trouble
INSERT INTO carteiro.rates (provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble)
VALUES (:provider, :ceiling, :cut_to, :peak, :cut_at_us, :next_us, :stays, :trouble)
ON CONFLICT (provider) DO NOTHING;

-- name: rate_put
-- Stores the rate of a provider. :provider; :ceiling; :cut_to; :peak; :cut_at_us; :next_us; :stays; :trouble
UPDATE carteiro.rates
SET
    ceiling = :ceiling, cut_to = :cut_to, peak = :peak, cut_at_us = :cut_at_us, next_us = :next_us, stays = :stays,
    trouble = :trouble
WHERE provider = :provider;

-- name: rates_list
-- The rate of every provider, by name.
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM carteiro.rates ORDER BY provider;
