-- Adds messages with their jobs: see the function of that name.
SELECT o_item, o_why, o_created_at, o_recipient_id, o_request_id
FROM carteiro.accept(
    $1::text::text[], $2::text::text[], $3::text::text[], $4::text::boolean[], $5::text::text[], $6::text::integer[],
    $7::text::bigint[], $8::text::text[], $9::text::text[], $10::text::text[], $11::text::text[], $12::text::text[],
    $13::text::text[], $14::text::text[], $15::text::bigint[], $16::text::text[], $17::text::integer[],
    $18::text::text[], $19::text::json[], $20::text::bigint[], $21::text::integer[], $22::text::text[], $23
);
