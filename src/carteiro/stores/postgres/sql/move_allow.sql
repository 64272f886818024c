-- This transaction is the move's own, and waits for no disk: the last one waits for all before it.
SELECT set_config('carteiro.moving', 'yes', true), set_config('synchronous_commit', 'off', true);
