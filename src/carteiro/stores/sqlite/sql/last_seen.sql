-- When somebody last took or renewed the lead of a task of upkeep.
SELECT max(seen_at) FROM leads;
