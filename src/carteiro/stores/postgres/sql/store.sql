-- name: extend
-- Extends claims: see the function of that name.
SELECT o_id, o_claim FROM carteiro.extend($1, $2, $3);

-- name: extend_holds
-- Extends the holds of declared attempts like their claims, never shortens one. :leases = [[id, claim], …]; :until
UPDATE carteiro.entries AS e
SET held_until = greatest(e.held_until, :until::bigint), version = e.version + 1
WHERE
    e.message_no = ANY (ARRAY(
        SELECT h.message_no
        FROM unnest(:leases_0::text[], :leases_1::text[]) AS l (id, claim)
        CROSS JOIN LATERAL (SELECT n.no FROM carteiro.messages AS n WHERE n.id = l.id OFFSET 0) AS m
        CROSS JOIN LATERAL (
            SELECT n.message_no, n.holder FROM carteiro.entries AS n WHERE n.message_no = m.no OFFSET 0
        ) AS h
        WHERE h.holder = l.claim
    ))
    AND e.holder = ANY (:leases_1::text[]) AND e.state = 'SENT_ATTEMPT' AND e.held_until IS NOT NULL;

-- name: reap
-- Makes jobs with an expired lease or hold ready: see the function of that name. $1 limit; $2 longest; $3 now
SELECT carteiro.reap($1, $2, $3);

-- name: release
-- Gives claimed jobs back: see the function of that name.
SELECT carteiro.release($1, $2, $3, $4);

-- name: tell
-- Notifies the other processes: there may be work.
SELECT pg_notify(w.channel, '') FROM carteiro.wake_channel AS w;

-- name: wake_channel
-- The channel to listen to.
SELECT w.channel FROM carteiro.wake_channel AS w;
