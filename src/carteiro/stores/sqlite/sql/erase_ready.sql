-- Drops ready jobs of a tenant whose messages are gone. :tenant
DELETE FROM ready
WHERE tenant = :tenant;
