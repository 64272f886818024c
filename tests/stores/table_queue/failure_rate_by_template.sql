SELECT
    template_type,
    COUNT(*) as total,
    COUNT(CASE WHEN status = 'failed' THEN 1 END) as failed,
    ROUND(COUNT(CASE WHEN status = 'failed' THEN 1 END) * 100.0 / COUNT(*), 2) as failure_rate
FROM email_queue
WHERE created_at >= NOW() - INTERVAL '7 days'
GROUP BY template_type
ORDER BY failure_rate DESC;
