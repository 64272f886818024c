-- What comes next is numbered after what was carried over; the last number of a message.
SELECT
    setval('carteiro.message_no', coalesce((SELECT max(no) FROM carteiro.messages), 0) + 1, false) - 1 AS last_no,
    setval(
        pg_get_serial_sequence('carteiro.events', 'id'),
        coalesce((SELECT max(id) FROM carteiro.events), 0) + 1, false
    ),
    setval(
        pg_get_serial_sequence('carteiro.inbox', 'id'),
        coalesce((SELECT max(id) FROM carteiro.inbox), 0) + 1, false
    );
