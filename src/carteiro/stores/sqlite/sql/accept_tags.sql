-- Lets new messages be found by their tags. :rows = [[message no, tag], …]
INSERT OR IGNORE INTO message_tags (tenant, tag, created_at, message_no)
SELECT m.tenant, r.value ->> 1, m.created_at, m.no
FROM json_each(:rows) AS r CROSS JOIN messages AS m ON m.no = r.value ->> 0;
