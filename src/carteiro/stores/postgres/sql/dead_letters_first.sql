-- When the oldest dead letter was moved here.
SELECT min(moved_at) FROM carteiro.dead_letters;
