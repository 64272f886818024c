-- The transactions that have been open longest and hold vacuum back: who, and for how many seconds. $1 so many seconds
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
