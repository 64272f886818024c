-- How many rows there are, by table.
SELECT 'tenants', count(*) FROM carteiro.tenants
UNION ALL SELECT 'tiers', count(*) FROM carteiro.tiers
UNION ALL SELECT 'sender_domains', count(*) FROM carteiro.sender_domains
UNION ALL SELECT 'access_keys', count(*) FROM carteiro.access_keys
UNION ALL SELECT 'recipient_records', count(*) FROM carteiro.recipient_records
UNION ALL SELECT 'messages', count(*) FROM carteiro.messages
UNION ALL SELECT 'entries', count(*) FROM carteiro.entries
UNION ALL SELECT 'contents', count(*) FROM carteiro.contents
UNION ALL SELECT 'events', count(*) FROM carteiro.events
UNION ALL SELECT 'message_tags', count(*) FROM carteiro.message_tags
UNION ALL SELECT 'dead_letters', count(*) FROM carteiro.dead_letters
UNION ALL SELECT 'idempotency_keys', count(*) FROM carteiro.idempotency_keys
UNION ALL SELECT 'api_counts', count(*) FROM carteiro.api_counts
UNION ALL SELECT 'templates', count(*) FROM carteiro.templates
UNION ALL SELECT 'suppressions', count(*) FROM carteiro.suppressions
UNION ALL SELECT 'inbox', count(*) FROM carteiro.inbox
UNION ALL SELECT 'overrides', count(*) FROM carteiro.overrides WHERE name <> 'moved_from'
UNION ALL SELECT 'ring_clock', count(*) FROM carteiro.ring_clock
UNION ALL SELECT 'seats', count(*) FROM carteiro.seats
UNION ALL SELECT 'jobs', (SELECT count(*) FROM carteiro.ready) + (SELECT count(*) FROM carteiro.delayed);
