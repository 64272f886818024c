-- Creates the tenants that are missing; known ones stay as they are. $1 ids; $2 stride; $3 now
INSERT INTO carteiro.tenants (id, name, stride, paused, created_at)
SELECT id, '', $2::bigint, false, $3::bigint
FROM unnest($1::text[]) AS i (id)
ORDER BY id
ON CONFLICT (id) DO NOTHING;
