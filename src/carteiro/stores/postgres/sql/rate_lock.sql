-- The pace of one provider, locked; what follows need not reach the disk: a lost draw is harmless. $1 provider
SELECT
    provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble,
    set_config('synchronous_commit', 'off', true)
FROM carteiro.rates
WHERE provider = $1::text
FOR UPDATE;
