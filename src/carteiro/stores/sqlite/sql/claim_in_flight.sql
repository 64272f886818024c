-- How many jobs of a tenant are in flight, of any kind, and when the first of them is over. :tenant; :now; :longest
SELECT count(*), min(parked_until)
FROM parked
WHERE tenant = :tenant AND is_claimed = 1 AND parked_until > :now AND parked_until <= :now + :longest;
