-- From here to the end of the transaction rows are found by the index that leads to them, in its order, whatever the
-- statistics say; and planned for the values asked for, so that `$1 IS NULL OR …` costs nothing.
SELECT
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true);
