-- To whom messages went, and what their timelines tell of that came from providers. $1 ids
SELECT
    m.id, m.to_address,
    ARRAY(
        SELECT carteiro.readable(v.metadata::text) ->> 'eventId' FROM carteiro.events AS v
        WHERE
            v.message_no = m.no
            AND v.type IN ('DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED')
    )
FROM carteiro.messages AS m
WHERE m.id = ANY ($1::text[]);
