-- The next tiers. :after = [name]
SELECT name, weight FROM tiers WHERE name > (:after ->> 0) ORDER BY name;
