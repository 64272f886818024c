-- name: rate_lock
-- The pace of one provider: the transaction is the only one that writes. :provider
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates WHERE provider = :provider;
