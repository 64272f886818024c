-- The statements after which no table can be changed. :text
SELECT format(
    'CREATE TRIGGER moved_%s_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, %Q); END',
    lower(o.value), t.name, o.value, t.name, :text
)
FROM sqlite_schema AS t CROSS JOIN json_each('["INSERT", "UPDATE", "DELETE"]') AS o
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%';
