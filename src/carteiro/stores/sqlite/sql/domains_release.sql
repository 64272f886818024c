-- These tenants claim no domain any more. :tenants
DELETE FROM sender_domains
WHERE tenant IN (SELECT value FROM json_each(:tenants));
