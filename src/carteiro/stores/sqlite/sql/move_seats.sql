-- How the next tenants stand; when to look at them is found out anew. :after = [kind, tenant]
SELECT kind, tenant, vt, last_turn, processed, last_processed_at, consecutive
FROM seats
WHERE (kind, tenant) > (:after ->> 0, :after ->> 1)
ORDER BY kind, tenant;
