-- The next jobs: until when each waits (NULL: it is ready, or was lost by who had claimed it), and how often it was
-- claimed. :after = [message no]
SELECT
    m.no AS message_no, iif(p.is_claimed = 0, p.parked_until, NULL) AS parked_until,
    coalesce(p.claims, r.claims, 0) AS claims
FROM messages AS m
LEFT JOIN parked AS p ON p.id = m.id
LEFT JOIN ready AS r
    ON r.tenant = m.tenant AND r.kind = m.kind AND r.priority = m.priority AND r.due_at = m.due_at AND r.id = m.id
WHERE m.no > (:after ->> 0) AND m.finished_at IS NULL
ORDER BY m.no;
