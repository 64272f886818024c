-- Counts jobs and seats anew: see the function of that name. The caller holds the lock of the ring. $1 now
SELECT carteiro.rebuild_ring($1);
