-- Takes requested changes, in this transaction: whoever else wants them waits, and finds none. $1 = [change, …]
DELETE FROM carteiro.queue_changes WHERE no = ANY ($1::bigint[]) RETURNING no;
