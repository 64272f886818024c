-- Makes room for the events of messages up to a number, so that they can be dropped by parts. $1 the number
SELECT carteiro.part_events($1, 500000);
