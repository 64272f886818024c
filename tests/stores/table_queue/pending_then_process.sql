SELECT * FROM email_queue WHERE status = 'pending';

SELECT * FROM process_pending_emails_for_retry(10);
