-- As `claim_due`, those included whose lease ran out or is further ahead than any can be.
-- :kind; :tenant; :now; :longest; :limit
SELECT id
FROM (
    SELECT * FROM (
        SELECT id, parked_until FROM parked
        WHERE tenant = :tenant AND is_claimed = 0 AND kind = :kind AND parked_until <= :now
        ORDER BY parked_until, id LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT id, parked_until FROM parked
        WHERE tenant = :tenant AND is_claimed = 1 AND kind = :kind AND parked_until <= :now
        ORDER BY parked_until, id LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT id, parked_until FROM parked
        WHERE tenant = :tenant AND is_claimed = 1 AND kind = :kind AND parked_until > :now + :longest
        ORDER BY parked_until, id LIMIT :limit
    )
)
ORDER BY parked_until, id
LIMIT :limit;
