-- Drops all versions of templates but the newest of each. The caller holds the tenant. $1 tenant; $2 types
DELETE FROM carteiro.templates AS t
WHERE
    t.tenant = $1::text AND t.type = ANY ($2::text[])
    AND t.version < (
        SELECT max(n.version) FROM carteiro.templates AS n WHERE n.tenant = $1::text AND n.type = t.type
    );
