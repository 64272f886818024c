-- Drops templates with all their versions. The caller holds the tenant. $1 tenant; $2 types
DELETE FROM carteiro.templates
WHERE tenant = $1::text AND type = ANY ($2::text[]);
