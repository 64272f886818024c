-- What claimed messages are and say: see the function of that name; then whether their tenant has suppressions.
-- $1 numbers
SELECT c.*, EXISTS (SELECT FROM carteiro.suppressions AS s WHERE s.tenant = c.o_tenant)
FROM carteiro.claimed($1) AS c;
