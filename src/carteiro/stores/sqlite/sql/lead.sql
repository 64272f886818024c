-- Takes or renews the lead of a task, unless another has it; answers a row if it was taken. :name; :holder; :now; :until
INSERT INTO leads (name, holder, until)
VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, until = excluded.until
WHERE holder = excluded.holder OR until <= :now OR until > excluded.until
RETURNING name;
