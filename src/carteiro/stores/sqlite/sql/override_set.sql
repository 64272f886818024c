-- Changes a setting at run time. :name; :setting
INSERT INTO overrides (name, setting)
VALUES (:name, :setting)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting;
