-- Adds a version of a template, behind all that were. :tenant; :type; :subject; :html; :text; :retry_preset; :bytes; :now
INSERT INTO templates (tenant, type, version, subject, html, text, retry_preset, bytes, created_at)
SELECT :tenant, :type, coalesce(max(version), 0) + 1, :subject, :html, :text, :retry_preset, :bytes, :now
FROM templates
WHERE tenant = :tenant AND type = :type
RETURNING tenant, type, version, subject, html, text, retry_preset, created_at, deleted_at;
