-- Drops every job: they are kept elsewhere, or are made again. The caller holds the lock of the ring.
WITH no_ready AS (DELETE FROM carteiro.ready),
no_delayed AS (DELETE FROM carteiro.delayed)
DELETE FROM carteiro.leased;
