-- Gives claimed jobs back: see the function of that name.
SELECT carteiro.release($1, $2, $3, $4);
