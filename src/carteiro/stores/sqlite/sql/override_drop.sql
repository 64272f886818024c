-- Goes back to the configured setting. :name
DELETE FROM overrides
WHERE name = :name;
