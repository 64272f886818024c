-- How the server was set: what must not be lost, who may write, and what vacuum may do.
SELECT
    current_setting('server_version_num')::integer AS server_version,
    current_setting('fsync')::boolean AS fsync,
    current_setting('full_page_writes')::boolean AS full_page_writes,
    current_setting('synchronous_commit') <> 'off' AS waits_for_commit,
    current_setting('transaction_read_only')::boolean OR pg_is_in_recovery() AS is_read_only,
    current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean AS has_autovacuum,
    (
        SELECT coalesce(array_agg(relname::text ORDER BY relname), '{}') FROM pg_class
        WHERE
            relnamespace = to_regnamespace('carteiro') AND relkind = 'r'
            AND EXISTS (
                SELECT FROM pg_options_to_table(reloptions)
                WHERE option_name = 'autovacuum_enabled' AND NOT option_value::boolean
            )
    ) AS without_autovacuum,
    pg_notification_queue_usage() AS notifications,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms;
