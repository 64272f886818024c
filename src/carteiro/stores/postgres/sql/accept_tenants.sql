-- The tenants that there are, and whether they are disabled. $1 ids
SELECT id, disabled FROM carteiro.tenants WHERE id = ANY ($1::text[]);
