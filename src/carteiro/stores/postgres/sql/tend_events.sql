-- Makes parts of events ahead, drops one that is over: see the function of that name. $1 finished until, null keeps; $2 now
SELECT carteiro.tend_events($1, $2);
