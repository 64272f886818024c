-- For each kind: is a seat in the ring, and when does the next alarm ring. :kinds = [kind, …]
SELECT
    k.value,
    EXISTS (SELECT 1 FROM seats AS s WHERE s.kind = k.value AND s.wake_at IS NULL),
    (SELECT min(s.wake_at) FROM seats AS s WHERE s.kind = k.value AND s.wake_at IS NOT NULL)
FROM json_each(:kinds) AS k;
