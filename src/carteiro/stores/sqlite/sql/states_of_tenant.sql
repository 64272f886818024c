-- How many messages of a tenant rest in each state. :tenant
SELECT state, count(*)
FROM (
    SELECT state FROM messages INDEXED BY emails_of_tenant
    WHERE tenant = :tenant AND kind = 'email:send'
    UNION ALL
    SELECT state FROM messages INDEXED BY tasks_of_tenant
    WHERE tenant = :tenant AND kind <> 'email:send'
)
GROUP BY state;
