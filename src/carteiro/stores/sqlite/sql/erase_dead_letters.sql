-- Drops dead letters of a tenant whose messages are gone. :tenant
DELETE FROM dead_letters
WHERE tenant = :tenant;
