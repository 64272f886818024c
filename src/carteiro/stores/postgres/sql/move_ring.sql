-- Seats every tenant that has jobs. $1 now
SELECT carteiro.rebuild_ring($1::bigint);
