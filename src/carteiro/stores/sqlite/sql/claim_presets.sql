-- The retry presets of template types, of those in use. :types = [[tenant, type], …]
SELECT
    i.value ->> 0, i.value ->> 1,
    (
        SELECT iif(t.deleted_at IS NULL, t.retry_preset, NULL) FROM templates AS t
        WHERE t.tenant = i.value ->> 0 AND t.type = i.value ->> 1
        ORDER BY t.version DESC
        LIMIT 1
    )
FROM json_each(:types) AS i;
