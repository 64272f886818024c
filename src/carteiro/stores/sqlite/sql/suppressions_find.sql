-- Those of the addresses that must not be written to. :now; :keys = [[tenant, key], …]
SELECT i.value ->> 0, i.value ->> 1
FROM json_each(:keys) AS i
WHERE EXISTS (
    SELECT 1 FROM suppressions AS s
    WHERE
        s.tenant = i.value ->> 0 AND s.key = i.value ->> 1 AND s.is_active = 1
        AND (s.expires_at IS NULL OR s.expires_at > :now)
);
