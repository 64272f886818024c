-- name: examine_newest
-- When the message that was accepted last came.
SELECT created_at FROM messages ORDER BY no DESC LIMIT 1;
