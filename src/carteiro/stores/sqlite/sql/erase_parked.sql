-- Drops parked jobs of a tenant whose messages are gone. :tenant
DELETE FROM parked
WHERE tenant = :tenant;
