-- What claimed messages say, for those that claim had no room for. $1 = [number, …]
SELECT message_no, content FROM carteiro.contents WHERE message_no = ANY ($1::bigint[]);
