-- Readies the jobs whose lease or hold ran out: see the function of that name. $1 limit; $2 longest; $3 now
SELECT carteiro.reap($1, $2, $3);
