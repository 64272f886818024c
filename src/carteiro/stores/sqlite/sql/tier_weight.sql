-- The weight of a tier. :tier
SELECT weight FROM tiers
WHERE name = :tier;
