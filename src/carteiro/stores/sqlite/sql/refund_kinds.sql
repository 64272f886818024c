-- Gives tokens of a kind's send limit back. :rows = [[kind, jobs], …]
UPDATE ring_clock
SET next_token_us = next_token_us - (r.value ->> 1) * max(1, limit_per_ms * 1000 / limit_count)
FROM json_each(:rows) AS r
WHERE ring_clock.kind = r.value ->> 0 AND ring_clock.limit_count IS NOT NULL;
