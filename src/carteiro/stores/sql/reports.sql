-- name: report_delete
-- Deletes the report of a process, and those whose stay is over. :process; :now; :latest
DELETE FROM carteiro.reports
WHERE process = :process OR until <= :now OR until > :latest;

-- name: report_put
-- Stores the report of a process. :process; :until; :said
INSERT INTO carteiro.reports (process, until, said)
VALUES (:process, :until, :said)
ON CONFLICT (process) DO UPDATE SET until = excluded.until, said = excluded.said;

-- name: reports_list
-- The live reports, by process. :now; :latest; :limit
SELECT process, said FROM carteiro.reports
WHERE until > :now AND until <= :latest
ORDER BY process
LIMIT :limit;
