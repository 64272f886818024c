-- name: rate_get
-- The pace of one provider. :provider
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates WHERE provider = :provider;

-- name: rate_put
-- Writes the pace of a provider. :provider; :ceiling; :cut_to; :peak; :cut_at_us; :next_us; :stays; :trouble
INSERT INTO rates (provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble)
VALUES (:provider, :ceiling, :cut_to, :peak, :cut_at_us, :next_us, :stays, :trouble)
ON CONFLICT (provider) DO UPDATE
SET
    ceiling = excluded.ceiling, cut_to = excluded.cut_to, peak = excluded.peak, cut_at_us = excluded.cut_at_us,
    next_us = excluded.next_us, stays = excluded.stays, trouble = excluded.trouble;

-- name: rates_list
-- The pace of every provider, by name.
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates ORDER BY provider;
