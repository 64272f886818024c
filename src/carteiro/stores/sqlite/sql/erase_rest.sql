-- Whether messages, recipients, idempotency keys, mails or suppressions of a tenant are left. :tenant
SELECT
    EXISTS (SELECT 1 FROM messages WHERE tenant = :tenant AND kind = 'email:send')
    OR EXISTS (SELECT 1 FROM messages WHERE tenant = :tenant AND kind <> 'email:send'),
    EXISTS (SELECT 1 FROM recipient_records WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM idempotency_keys WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM inbox WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM suppressions WHERE tenant = :tenant);
