-- Takes or renews the lead of a task, unless another has it; answers a row if it was taken. :name; :holder; :now; :until
INSERT INTO leads (name, holder, until, seen_at)
VALUES (:name, :holder, :until, :now)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, until = excluded.until, seen_at = excluded.seen_at
WHERE holder = excluded.holder OR until <= :now OR until > excluded.until
RETURNING name;
