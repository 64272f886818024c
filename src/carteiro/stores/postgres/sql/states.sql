-- How many messages rest in each state.
SELECT state, count(*)
FROM carteiro.entries
GROUP BY state;
