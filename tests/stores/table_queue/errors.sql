SELECT error_message, COUNT(*)
FROM email_queue
WHERE status = 'failed'
GROUP BY error_message
ORDER BY COUNT(*) DESC;
