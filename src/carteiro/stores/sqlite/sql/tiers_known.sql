-- Those of the tiers that have a weight. :tiers
SELECT name
FROM tiers
WHERE name IN (SELECT value FROM json_each(:tiers));
