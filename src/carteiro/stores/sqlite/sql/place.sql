-- Where the job of a message is, how its tenant stands, and the send limit of its kind. :id; :now; :longest
SELECT
    p.parked_until, p.claim_id IS NOT NULL, coalesce(p.claims, r.claims, 0), s.wake_at,
    (
        SELECT count(*) FROM parked AS f
        WHERE
            f.tenant = m.tenant AND f.is_claimed = 1
            AND f.parked_until > :now AND f.parked_until <= :now + :longest
    ),
    c.limit_count, c.limit_per_ms, c.draws
FROM messages AS m
LEFT JOIN parked AS p ON p.id = m.id
LEFT JOIN ready AS r
    ON r.tenant = m.tenant AND r.kind = m.kind AND r.priority = m.priority AND r.due_at = m.due_at AND r.id = m.id
LEFT JOIN seats AS s ON s.kind = m.kind AND s.tenant = m.tenant
LEFT JOIN ring_clock AS c ON c.kind = m.kind
WHERE m.id = :id AND m.finished_at IS NULL;
