-- What a change of a tenant starts from. :id
SELECT stride, rate_per_second, next_token_us
FROM tenants
WHERE id = :id;
