-- Pushes the end of claims on: see the function of that name.
SELECT o_id, o_claim FROM carteiro.extend($1, $2, $3);
