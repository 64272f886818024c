-- Makes the jobs of messages claimable now. :numbers = [message no, …]
INSERT INTO ready (tenant, kind, priority, due_at, id, message_no)
SELECT m.tenant, m.kind, m.priority, m.due_at, m.id, m.no
FROM json_each(:numbers) AS i CROSS JOIN messages AS m ON m.no = i.value;
