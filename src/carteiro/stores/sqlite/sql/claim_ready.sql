-- Readies the first parked jobs of a seat whose time has come. :kind; :tenant; :now; :longest; :limit
UPDATE jobs
SET parked_until = NULL, is_claimed = 0, claim_id = NULL
WHERE id IN (
    SELECT id FROM (
        SELECT * FROM (
            SELECT id, parked_until FROM jobs
            WHERE tenant = :tenant AND is_claimed = 0 AND kind = :kind AND parked_until <= :now
            ORDER BY parked_until, id LIMIT :limit
        )
        UNION ALL
        SELECT * FROM (
            SELECT id, parked_until FROM jobs
            WHERE tenant = :tenant AND is_claimed = 1 AND kind = :kind AND parked_until <= :now
            ORDER BY parked_until, id LIMIT :limit
        )
        UNION ALL
        SELECT * FROM (
            SELECT id, parked_until FROM jobs
            WHERE tenant = :tenant AND is_claimed = 1 AND kind = :kind AND parked_until > :now + :longest
            ORDER BY parked_until, id LIMIT :limit
        )
    )
    ORDER BY parked_until, id LIMIT :limit
);
