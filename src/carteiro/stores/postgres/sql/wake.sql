-- name: tell
-- Tells all processes that there may be work.
SELECT pg_notify('carteiro', '');
