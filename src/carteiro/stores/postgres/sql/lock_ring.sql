-- Keeps claims away until the transaction ends.
SELECT 1 FROM carteiro.ring FOR UPDATE;
