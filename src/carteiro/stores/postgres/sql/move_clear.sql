-- Takes away what settings alone made: every process that starts makes it again.
DELETE FROM carteiro.tiers;
DELETE FROM carteiro.ring_clock;
DELETE FROM carteiro.leads;
