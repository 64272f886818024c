-- How many rows there are to be carried over, by table. What belongs to no message is seen by nobody, and stays.
SELECT 'tenants', count(*) FROM tenants
UNION ALL SELECT 'tiers', count(*) FROM tiers
UNION ALL SELECT 'sender_domains', count(*) FROM sender_domains
UNION ALL SELECT 'access_keys', count(*) FROM access_keys
UNION ALL SELECT 'recipient_records', count(*) FROM recipient_records
UNION ALL SELECT 'messages', count(*) FROM messages
UNION ALL SELECT 'entries', count(*) FROM messages
UNION ALL SELECT 'contents', count(*) FROM contents
UNION ALL SELECT 'events', count(*) FROM events AS e JOIN messages AS m ON m.id = e.message_id
UNION ALL SELECT 'message_tags', count(*) FROM message_tags
UNION ALL SELECT 'dead_letters', count(*) FROM dead_letters AS d JOIN messages AS m ON m.id = d.message_id
UNION ALL SELECT 'idempotency_keys', count(*) FROM idempotency_keys
UNION ALL SELECT 'api_counts', count(*) FROM api_counts
UNION ALL SELECT 'templates', count(*) FROM templates
UNION ALL SELECT 'suppressions', count(*) FROM suppressions
UNION ALL SELECT 'inbox', count(*) FROM inbox
UNION ALL SELECT 'overrides', count(*) FROM overrides WHERE name <> 'moved'
UNION ALL SELECT 'ring_clock', count(*) FROM ring_clock
UNION ALL SELECT 'seats', count(*) FROM seats
UNION ALL SELECT 'jobs', count(*) FROM messages WHERE finished_at IS NULL;
