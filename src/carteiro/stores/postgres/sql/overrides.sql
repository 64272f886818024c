-- name: override_drop
-- Goes back to the configured setting. $1 name
DELETE FROM carteiro.overrides
WHERE name = $1::text;

-- name: override_get
-- A setting changed at run time. $1 name
SELECT setting FROM carteiro.overrides
WHERE name = $1::text;

-- name: override_set
-- Changes a setting at run time. $1 name; $2 setting
INSERT INTO carteiro.overrides (name, setting)
VALUES ($1::text, $2::text)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting;
