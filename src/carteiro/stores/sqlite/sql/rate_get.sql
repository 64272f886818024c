-- The pace of one provider. :provider
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates WHERE provider = :provider;
