-- What was done here since the move ended. $1 the last number that was carried over
SELECT
    (SELECT count(*) FROM carteiro.messages WHERE no > $1::bigint) AS accepted,
    (SELECT count(*) FROM carteiro.entries WHERE message_no <= $1::bigint AND version > 1) AS changed,
    (SELECT count(*) FROM carteiro.leased) AS leased;
