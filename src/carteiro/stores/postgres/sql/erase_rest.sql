-- Whether messages, and whether recipients, idempotency keys, mails or suppressions of a tenant are left. $1 tenant
SELECT
    EXISTS (SELECT FROM carteiro.messages WHERE tenant = $1::text AND kind = 'email:send')
    OR EXISTS (SELECT FROM carteiro.messages WHERE tenant = $1::text AND kind <> 'email:send'),
    EXISTS (SELECT FROM carteiro.recipient_records WHERE tenant = $1::text)
    OR EXISTS (SELECT FROM carteiro.idempotency_keys WHERE tenant = $1::text)
    OR EXISTS (SELECT FROM carteiro.inbox WHERE tenant = $1::text)
    OR EXISTS (SELECT FROM carteiro.suppressions WHERE tenant = $1::text);
