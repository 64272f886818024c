-- What is known of the move into this database, kept from others until the end of the transaction.
SELECT setting FROM carteiro.overrides WHERE name = 'moved_from' FOR UPDATE;
