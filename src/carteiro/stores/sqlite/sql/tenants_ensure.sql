-- Creates the tenants that are missing; known ones stay as they are. :ids = [id, …]; :stride; :now
INSERT INTO tenants (id, name, stride, paused, created_at)
SELECT value, '', :stride, 0, :now
FROM json_each(:ids)
WHERE true
ON CONFLICT (id) DO NOTHING;
