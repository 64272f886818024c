-- Stores declared attempts: see the function of that name.
SELECT carteiro.begin_attempts(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::integer[], $5::text::integer[],
    $6::text::bigint[], $7::text::text[], $8::text::integer[], $9::text::text[], $10::text::json[], $11::text::bigint[]
);
