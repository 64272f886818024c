-- Nobody else adds a key of an administrator until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('carteiro.access_keys', 0));
