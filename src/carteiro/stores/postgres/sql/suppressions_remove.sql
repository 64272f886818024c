-- Takes the records of addresses away; how many. $1 tenant; $2 keys
WITH gone AS (
    DELETE FROM carteiro.suppressions
    WHERE tenant = $1::text AND key = ANY (ARRAY(SELECT unnest($2::text[])))
    RETURNING 1
)
SELECT count(*) FROM gone;
