-- name: last_seen
-- The time at which a process last took or renewed a lead of upkeep. Alerts are evaluated by processes without upkeep, too.
SELECT max(seen_at) FROM carteiro.leads
WHERE name <> 'alerts';

-- name: lead
-- Takes or renews the lead of a task, unless another process has it. :name; :holder; :now; :until
INSERT INTO carteiro.leads AS l (name, holder, until, seen_at)
VALUES (:name, :holder, :until, :now)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, until = excluded.until, seen_at = excluded.seen_at
WHERE l.holder = excluded.holder OR l.until <= :now OR l.until > excluded.until;
