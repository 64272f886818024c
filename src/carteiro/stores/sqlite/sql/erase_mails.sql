-- Drops what the sandbox kept for a tenant. :tenant; :limit
DELETE FROM inbox
WHERE id IN (SELECT i.id FROM inbox AS i WHERE i.tenant = :tenant LIMIT :limit);
