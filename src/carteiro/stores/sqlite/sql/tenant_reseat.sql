-- Moves a seat of a tenant. :kind; :tenant; :vt; :wake_at
UPDATE seats
SET vt = :vt, wake_at = :wake_at
WHERE kind = :kind AND tenant = :tenant;
