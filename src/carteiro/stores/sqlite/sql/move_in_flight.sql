-- How many leases and holds are live, and when the last one runs out. :now; :longest
SELECT count(*), max(p.parked_until)
FROM tenants AS t CROSS JOIN parked AS p ON p.tenant = t.id AND p.is_claimed = 1
WHERE p.parked_until > :now AND p.parked_until <= :now + :longest;
