-- Changes a setting at run time. $1 name; $2 setting
INSERT INTO carteiro.overrides (name, setting)
VALUES ($1::text, $2::text)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting;
