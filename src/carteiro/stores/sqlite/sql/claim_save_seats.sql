-- Stores seats after their turns. :rows = [[kind, tenant, vt, last_turn, wake_at, processed, jobs of its turn, served], …]; :now
UPDATE seats
SET
    vt = r.value ->> 2, last_turn = r.value ->> 3, wake_at = r.value ->> 4, processed = r.value ->> 5,
    consecutive = coalesce(r.value ->> 6, consecutive), last_processed_at = iif(r.value ->> 7, :now, last_processed_at)
FROM json_each(:rows) AS r
WHERE seats.kind = r.value ->> 0 AND seats.tenant = r.value ->> 1;
