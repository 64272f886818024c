-- The last number that was given out, and between which transactions whoever took it may still be at work.
SELECT
    (SELECT last_value FROM carteiro.message_no),
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
