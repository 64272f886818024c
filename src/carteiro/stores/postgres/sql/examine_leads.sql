-- Until when somebody leads, or led, a task of upkeep: the latest of them.
SELECT max(until) FROM carteiro.leads;
