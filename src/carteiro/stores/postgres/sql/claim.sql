-- Leases ready jobs: see the function of that name.
SELECT * FROM carteiro.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
