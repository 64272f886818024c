-- The leases of claims, found tenant by tenant as `reap_find` does. :claims = [claim, …]
SELECT p.id, p.claim_id
FROM tenants AS t CROSS JOIN parked AS p ON p.tenant = t.id AND p.is_claimed = 1
WHERE p.claim_id IN (SELECT value FROM json_each(:claims));
