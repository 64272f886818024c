-- The claims that have an attempt under way. $1 ids, $2 claims
SELECT l.id, l.claim
FROM unnest($1::text[], $2::text[]) AS l (id, claim)
CROSS JOIN LATERAL (SELECT n.no FROM carteiro.messages AS n WHERE n.id = l.id OFFSET 0) AS m
CROSS JOIN LATERAL (SELECT * FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0) AS e
WHERE e.state = 'SENT_ATTEMPT' AND e.holder = l.claim;
