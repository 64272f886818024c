-- Finding messages, newest first, by what people ask for. Each index costs every message that is in it a write, so each
-- holds as little as it can: what is NULL is left out, and no index names a column that a declare changes.

CREATE INDEX messages_by_age ON messages (created_at);
CREATE INDEX emails_of_tenant ON messages (tenant, created_at) WHERE kind = 'email:send';
CREATE INDEX tasks_of_tenant ON messages (tenant, created_at) WHERE kind <> 'email:send';
-- The tenant is part of each key: a tenant's list walks its own rows alone.
CREATE INDEX messages_to ON messages (to_address, tenant, created_at) WHERE to_address IS NOT NULL;
CREATE INDEX messages_by_external_id ON messages (external_id, tenant, created_at) WHERE external_id IS NOT NULL;
CREATE INDEX messages_of_recipient ON messages (recipient_id, created_at) WHERE recipient_id IS NOT NULL;

-- By state. Sent: e-mails that have the provider's id. Unlucky: what ended otherwise or failed at least once.
-- The rest is unfinished and has a job: it is found through the queue.
CREATE INDEX messages_sent ON messages (tenant, created_at)
    WHERE provider_message_id IS NOT NULL AND kind = 'email:send';
CREATE INDEX messages_unlucky ON messages (tenant, created_at)
    WHERE provider_message_id IS NULL AND (finished_at IS NOT NULL OR failure IS NOT NULL);
-- Not what is erased: its id is an empty text.
CREATE INDEX messages_by_provider_id ON messages (provider_message_id, tenant, created_at)
    WHERE provider_message_id <> '';

-- An open attempt has a claim on it, or once had: such jobs are few, and usually none.
CREATE INDEX ready_again ON ready (tenant, message_no) WHERE claims > 0;
CREATE INDEX parked_again ON parked (tenant, message_no) WHERE claims > 0 AND is_claimed = 0;

CREATE INDEX recipients_named ON recipient_records (external_id, tenant, created_at, id)
    WHERE external_id IS NOT NULL;
CREATE INDEX recipients_by_age ON recipient_records (tenant, created_at, id);
CREATE INDEX recipients_by_email ON recipient_records (tenant, email, created_at, id);

-- Erasing a tenant finds what is its own by these.
CREATE INDEX inbox_of_tenant ON inbox (tenant);
CREATE INDEX idempotency_keys_of_message ON idempotency_keys (message_id);
