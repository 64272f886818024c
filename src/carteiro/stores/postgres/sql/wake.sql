-- name: tell
-- Tell the other processes that there may be work.
SELECT pg_notify(w.channel, '') FROM carteiro.wake_channel AS w;

-- name: wake_channel
-- The channel to listen to.
SELECT w.channel FROM carteiro.wake_channel AS w;
