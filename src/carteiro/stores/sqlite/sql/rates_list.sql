-- The pace of every provider, by name.
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates ORDER BY provider;
