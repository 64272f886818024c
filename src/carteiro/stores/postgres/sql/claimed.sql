-- What claimed messages are and say: see the function of that name. $1 numbers
SELECT * FROM carteiro.claimed($1);
