-- Client roles that nothing bounds: their statements in this database, or their connections.
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
