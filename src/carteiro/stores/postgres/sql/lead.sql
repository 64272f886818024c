-- Takes or renews the lead of a task, unless another has it; answers a row if it was taken. $1 name; $2 holder; $3 now; $4 until
INSERT INTO carteiro.leads AS l (name, holder, until, seen_at)
VALUES ($1, $2, $4, $3)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, until = excluded.until, seen_at = excluded.seen_at
WHERE l.holder = excluded.holder OR l.until <= $3 OR l.until > excluded.until
RETURNING name;
