-- Whether jobs are kept elsewhere, and whether the ring is that of another server. $1 the mark of the former
SELECT
    EXISTS (SELECT FROM carteiro.overrides AS o WHERE o.name = $1::text),
    carteiro.is_restored();
