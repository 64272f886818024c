-- Releases all that claims leased: see the function of that name. $1 claims; $2 now
SELECT carteiro.undo_claims($1, $2);
