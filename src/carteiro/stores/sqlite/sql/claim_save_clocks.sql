-- Stores the clocks of the kinds claimed together. :rows = [[kind, next_token_us], …]; :v; :turn; :now
INSERT INTO ring_clock (kind, v, turn, seen_at, next_token_us)
SELECT value ->> 0, :v, :turn, :now, value ->> 1
FROM json_each(:rows)
WHERE true
ON CONFLICT (kind) DO UPDATE
SET v = max(v, excluded.v), turn = excluded.turn, seen_at = excluded.seen_at,
    next_token_us = excluded.next_token_us;
