SELECT
    template_type,
    COUNT(*) as pending_count,
    AVG(retries) as avg_retries
FROM email_queue
WHERE status = 'pending'
GROUP BY template_type;
