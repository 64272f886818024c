-- Keeps claims away until the transaction ends.
SELECT carteiro.lock_ring();
