-- name: rate_lock
-- The rate of one provider, locked; the change need not be durable: a lost draw is harmless. :provider
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble
FROM carteiro.rates
WHERE provider = :provider AND set_config('synchronous_commit', 'off', true) IS NOT NULL
FOR UPDATE;
