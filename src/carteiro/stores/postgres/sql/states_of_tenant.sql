-- How many messages of a tenant rest in each state. $1 tenant
SELECT e.state, count(*)
FROM (
    SELECT no FROM carteiro.messages WHERE tenant = $1 AND kind = 'email:send'
    UNION ALL
    SELECT no FROM carteiro.messages WHERE tenant = $1 AND kind <> 'email:send'
) AS m
JOIN carteiro.entries AS e ON e.message_no = m.no
GROUP BY e.state;
