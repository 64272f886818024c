-- Drops the versions of a template up to one. The caller holds the tenant. $1 tenant; $2 type; $3 the newest that goes
DELETE FROM carteiro.templates
WHERE tenant = $1::text AND type = $2::text AND version <= $3::bigint;
