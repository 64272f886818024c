-- name: override_drop
-- Restores the configured setting. :name
DELETE FROM carteiro.overrides
WHERE name = :name;

-- name: override_get
-- A setting changed at run time. :name
SELECT setting FROM carteiro.overrides
WHERE name = :name;

-- name: override_set
-- Changes a setting at run time. :name; :setting
INSERT INTO carteiro.overrides (name, setting)
VALUES (:name, :setting)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting;
