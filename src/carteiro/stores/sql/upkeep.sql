-- name: last_seen
-- The time at which a process last took or renewed a lead of upkeep. Processes without upkeep have those of alerts, too.
SELECT max(seen_at) FROM carteiro.leads
WHERE name NOT IN ('alerts', 'notices');

-- name: lead
-- Takes or renews the lead of a task, unless another process has it. One that was taken later than now by more than its own
-- term is of a clock that was ahead; a little later it may be of a process that was faster since this one read the time.
-- :name; :holder; :now; :until
INSERT INTO carteiro.leads AS l (name, holder, until, seen_at)
VALUES (:name, :holder, :until, :now)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, until = excluded.until, seen_at = excluded.seen_at
WHERE l.holder = excluded.holder OR l.until <= :now OR l.seen_at - :now > l.until - l.seen_at;
