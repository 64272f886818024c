-- How many records a tenant has, as far as it matters. :tenant; :most = enough to know
SELECT count(*) FROM (
    SELECT 1 FROM suppressions INDEXED BY suppressions_by_age WHERE tenant = :tenant LIMIT :most
);
