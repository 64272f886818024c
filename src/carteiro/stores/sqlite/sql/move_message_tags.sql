-- The next tags. :after = [tenant, tag, created_at, message no]
SELECT tenant, tag, created_at, message_no
FROM message_tags
WHERE (tenant, tag, created_at, message_no) > (:after ->> 0, :after ->> 1, :after ->> 2, :after ->> 3)
ORDER BY tenant, tag, created_at, message_no;
