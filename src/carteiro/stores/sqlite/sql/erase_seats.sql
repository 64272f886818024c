-- Drops the seats of a tenant. :tenant
DELETE FROM seats
WHERE tenant = :tenant;
