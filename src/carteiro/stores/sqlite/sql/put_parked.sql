-- Makes the jobs of messages claimable when they are due. :numbers = [message no, …]
INSERT INTO parked (id, message_no, kind, tenant, priority, due_at, parked_until)
SELECT m.id, m.no, m.kind, m.tenant, m.priority, m.due_at, m.due_at
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value;
