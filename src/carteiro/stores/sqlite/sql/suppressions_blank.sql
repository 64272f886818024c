-- Leaves of an address that is suppressed its hash alone. :tenant; :key
UPDATE suppressions
SET address = NULL
WHERE tenant = :tenant AND key = :key;
