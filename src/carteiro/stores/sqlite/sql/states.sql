-- How many messages rest in each state.
SELECT state, count(*)
FROM messages
GROUP BY state;
