-- The first parked jobs of a seat whose time has come, the usual case: none of its leases ran out.
-- :kind; :tenant; :now; :limit
SELECT id
FROM parked
WHERE tenant = :tenant AND is_claimed = 0 AND kind = :kind AND parked_until <= :now
ORDER BY parked_until, id
LIMIT :limit;
