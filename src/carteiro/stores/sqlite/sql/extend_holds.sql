-- The holds of declared attempts follow their claims, never back. :leases = [[id, claim], …], those that stand; :until
UPDATE messages
SET held_until = max(held_until, :until)
FROM json_each(:leases) AS l
WHERE
    messages.id = l.value ->> 0 AND messages.holder = l.value ->> 1
    AND messages.state = 'SENT_ATTEMPT' AND messages.held_until IS NOT NULL;
