-- The statements that undo what `move_begin` and `move_close` lead to.
SELECT format('DROP TRIGGER %s', name) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'moved%';
