-- name: track_known
-- To whom messages went and with which providers, and what their timelines tell of that came from them. $1 ids
SELECT
    m.id, m.to_address,
    ARRAY(
        SELECT DISTINCT carteiro.readable(v.metadata::text) ->> 'provider' FROM carteiro.events AS v
        WHERE v.message_no = m.no AND v.type = 'SENT_ATTEMPT'
    ),
    ARRAY(
        SELECT carteiro.readable(v.metadata::text) ->> 'eventId' FROM carteiro.events AS v
        WHERE
            v.message_no = m.no
            AND v.type IN ('DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED')
    )
FROM carteiro.messages AS m
WHERE m.id = ANY (ARRAY(SELECT unnest($1::text[])));
