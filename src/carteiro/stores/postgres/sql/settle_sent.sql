-- Stores what was sent: see the function of that name.
SELECT stored, has_work
FROM carteiro.settle_sent(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::integer[], $5::text::integer[],
    $6::text::bigint[], $7::text::text[], $8::text::text[], $9::text::integer[], $10::text::text[], $11::text::json[],
    $12::text::bigint[], $13, $14
);
