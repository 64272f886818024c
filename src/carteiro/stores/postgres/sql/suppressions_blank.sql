-- Leaves of an address that is suppressed its hash alone. $1 tenant; $2 key
UPDATE carteiro.suppressions
SET address = NULL
WHERE tenant = $1::text AND key = $2::text;
