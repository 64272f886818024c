-- A row if somebody has the lead of a task. :name; :now
SELECT 1 FROM leads WHERE name = :name AND until > :now;
