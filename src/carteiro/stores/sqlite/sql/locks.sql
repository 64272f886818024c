-- name: accept_lock
-- Nothing: no other transaction writes. :numbers
SELECT 1;

-- name: lock_ring
-- Nothing: no other transaction writes.
SELECT 1;

-- name: tenant_lock
-- A row if there is such a tenant; no other transaction writes. :tenant
SELECT 1 FROM tenants
WHERE id = :tenant;

-- name: redrive_lock
-- Nothing: no other transaction writes. :ids
SELECT 1;

-- name: by_index
-- Nothing: without statistics, plans always use the indexes.
SELECT 1;

-- name: rate_lock
-- The rate of one provider; no other transaction writes. :provider
SELECT provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble FROM rates WHERE provider = :provider;
