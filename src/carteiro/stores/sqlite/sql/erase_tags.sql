-- Drops tags of a tenant whose messages are gone. :tenant
DELETE FROM message_tags
WHERE tenant = :tenant;
