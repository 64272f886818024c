SELECT
    id,
    template_type,
    recipient_email,
    retries,
    error_message,
    created_at,
    last_attempt_at
FROM email_queue
WHERE retries > 0
  AND created_at >= NOW() - INTERVAL '24 hours'
ORDER BY retries DESC, created_at DESC;
