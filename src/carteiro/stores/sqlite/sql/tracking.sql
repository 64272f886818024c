-- name: track_known
-- To whom messages went and with which providers, and what their timelines tell of that came from them. :ids = [id, …]
SELECT
    m.id, m.to_address,
    json_group_array(DISTINCT e.metadata ->> 'provider') FILTER (WHERE e.type = 'SENT_ATTEMPT'),
    json_group_array(e.metadata ->> 'eventId') FILTER (WHERE e.type <> 'SENT_ATTEMPT')
FROM json_each(:ids) AS i
JOIN messages AS m ON m.id = i.value
LEFT JOIN events AS e
    ON
        e.message_id = m.id
        AND e.type IN ('SENT_ATTEMPT', 'DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED')
GROUP BY m.no;
