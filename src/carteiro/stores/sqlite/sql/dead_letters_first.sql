-- When the oldest dead letter was moved here.
SELECT min(moved_at) FROM dead_letters;
