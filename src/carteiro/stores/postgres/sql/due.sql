-- The next jobs of a tenant, and those that are claimed, so many of each sort: whether claimed, rank, id.
-- $1 tenant; $2 kind; $3 limit; $4 now
(
    SELECT true, 0::bigint, l.id
    FROM carteiro.leased AS l
    WHERE (l.tenant, l.kind) = ($1, $2)
    ORDER BY l.tenant, l.kind, l.parked_until
    LIMIT $3
)
UNION ALL
(
    SELECT false, r.rank, r.id
    FROM carteiro.ready AS r
    WHERE r.tenant = $1 AND r.kind = $2
    ORDER BY r.rank, r.id
    LIMIT $3
)
UNION ALL
(
    SELECT false, d.rank, d.id
    FROM carteiro.delayed AS d
    WHERE d.tenant = $1 AND d.kind = $2 AND d.parked_until <= $4::bigint
    ORDER BY d.parked_until, d.id
    LIMIT $3
);
