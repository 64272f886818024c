SELECT
    retries,
    COUNT(*) as count,
    COUNT(CASE WHEN status = 'sent' THEN 1 END) as eventually_sent,
    ROUND(COUNT(CASE WHEN status = 'sent' THEN 1 END) * 100.0 / COUNT(*), 2) as recovery_rate
FROM email_queue
WHERE retries > 0
GROUP BY retries
ORDER BY retries;
