-- To whom messages went, and what their timelines tell of that came from providers. :ids = [id, …]
SELECT m.id, m.to_address, json_group_array(e.metadata ->> 'eventId') FILTER (WHERE e.id IS NOT NULL)
FROM json_each(:ids) AS i
JOIN messages AS m ON m.id = i.value
LEFT JOIN events AS e
    ON e.message_id = m.id AND e.type IN ('DELAYED', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED')
GROUP BY m.no;
