-- As `claim_ready`, for a seat none of whose leases ran out: retries and scheduled jobs, the usual case.
-- :kind; :tenant; :now; :limit
UPDATE jobs
SET parked_until = NULL
WHERE id IN (
    SELECT id FROM jobs
    WHERE tenant = :tenant AND is_claimed = 0 AND kind = :kind AND parked_until <= :now
    ORDER BY parked_until, id LIMIT :limit
);
