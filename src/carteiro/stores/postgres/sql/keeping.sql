-- Whether jobs are kept elsewhere, whether the ring is that of another server, and whether somebody has a lead.
-- $1 the mark of the first; $2 the lead; $3 now
SELECT
    EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = $1::text),
    carteiro.is_restored(),
    EXISTS (SELECT FROM carteiro.leads AS l WHERE l.name = $2::text AND l.until > $3::bigint);
