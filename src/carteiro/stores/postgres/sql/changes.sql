-- name: begin
-- Stores declared attempts: see the function of that name.
SELECT carteiro.begin_attempts(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::integer[], $5::text::integer[],
    $6::text::bigint[], $7::text::text[], $8::text::integer[], $9::text::text[], $10::text::json[], $11::text::bigint[]
);

-- name: requests_apply
-- As `save`, of requested changes: those that were stored are requested no longer. $39 = [change, …], an item each
WITH saved AS MATERIALIZED (
    SELECT stored, has_work
    FROM carteiro.save(
        $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::text[], $5::text::text[],
        $6::text::text[], $7::text::bigint[], $8::text::bigint[], $9::text::integer[], $10::text::integer[],
        $11::text::integer[], $12::text::integer[], $13::text::integer[], $14::text::text[], $15::text::bigint[],
        $16::text::bigint[], $17::text::text[], $18::text::text[], $19::text::text[], $20::text::json[],
        $21::text::bigint[], $22::text::bigint[],
        $23::text::integer[], $24::text::bigint[],
        $25::text::integer[], $26::text::text[], $27::text::json[], $28::text::bigint[],
        $29::text::integer[], $30::text::text[], $31::text::text[], $32::text::text[], $33::text::json[],
        $34::text::integer[], $35::text::integer[], $36, $37, $38
    )
),
applied AS (
    DELETE FROM carteiro.queue_changes AS c
    USING saved AS s
    WHERE c.no = ANY (ARRAY(SELECT ($39::bigint[])[i] FROM unnest(s.stored) AS i))
)
SELECT stored, has_work FROM saved;

-- name: save
-- Stores what the rules made of entries: see the function of that name.
SELECT stored, has_work
FROM carteiro.save(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::text[], $5::text::text[],
    $6::text::text[], $7::text::bigint[], $8::text::bigint[], $9::text::integer[], $10::text::integer[],
    $11::text::integer[], $12::text::integer[], $13::text::integer[], $14::text::text[], $15::text::bigint[],
    $16::text::bigint[], $17::text::text[], $18::text::text[], $19::text::text[], $20::text::json[],
    $21::text::bigint[], $22::text::bigint[],
    $23::text::integer[], $24::text::bigint[],
    $25::text::integer[], $26::text::text[], $27::text::json[], $28::text::bigint[],
    $29::text::integer[], $30::text::text[], $31::text::text[], $32::text::text[], $33::text::json[],
    $34::text::integer[], $35::text::integer[], $36, $37, $38
);

-- name: settle_sent
-- Stores what was sent: see the function of that name.
SELECT stored, has_work
FROM carteiro.settle_sent(
    $1::text::bigint[], $2::text::integer[], $3::text::text[], $4::text::integer[], $5::text::integer[],
    $6::text::bigint[], $7::text::text[], $8::text::text[], $9::text::integer[], $10::text::text[], $11::text::json[],
    $12::text::bigint[], $13, $14
);
