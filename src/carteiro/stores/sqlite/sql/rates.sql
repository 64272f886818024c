-- name: rate_lock
-- The rate of one provider; no other transaction writes. :provider
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates WHERE provider = :provider;
