-- name: examine_client_roles
-- Client roles without a limit on their statements in this database, or on their connections.
SELECT r.rolname::text
FROM carteiro.client_roles AS c JOIN pg_roles AS r ON r.rolname = c.role
WHERE
    r.rolconnlimit < 0
    OR NOT EXISTS (
        SELECT FROM pg_db_role_setting AS s CROSS JOIN unnest(s.setconfig) AS said
        WHERE
            s.setrole = r.oid AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
            AND said LIKE 'statement_timeout=%'
    )
ORDER BY r.rolname;

-- name: examine_old_transactions
-- The oldest open transactions that delay vacuum: role, and age in seconds. $1 least age in seconds
SELECT coalesce(nullif(application_name, ''), usename, 'process') || ' (pid ' || pid || ')' AS whose,
    extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds
FROM pg_stat_activity
WHERE
    datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    AND xact_start < clock_timestamp() - make_interval(secs => $1)
    AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
UNION ALL
SELECT 'prepared transaction ' || gid, extract(epoch FROM clock_timestamp() - prepared)::bigint
FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - make_interval(secs => $1)
ORDER BY seconds DESC
LIMIT 3;

-- name: examine_settings
-- Settings of the server: durability, read-only, vacuum.
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
