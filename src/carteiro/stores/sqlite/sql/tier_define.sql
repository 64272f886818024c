-- Sets the weight of a tier. :name; :weight
INSERT INTO tiers (name, weight)
VALUES (:name, :weight)
ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;
