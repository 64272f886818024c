-- Stores the clocks of the kinds claimed together. :rows = [[kind, draws], …]; :v; :turn; :now
INSERT INTO ring_clock (kind, v, turn, seen_at, draws)
SELECT value ->> 0, :v, :turn, :now, value ->> 1
FROM json_each(:rows)
WHERE true
ON CONFLICT (kind) DO UPDATE
SET v = max(v, excluded.v), turn = excluded.turn, seen_at = excluded.seen_at,
    draws = excluded.draws;
