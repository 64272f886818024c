-- The next settings that were changed at run time, but for our own mark. :after = [name]
SELECT name, setting FROM overrides WHERE name > (:after ->> 0) AND name <> 'moved' ORDER BY name;
