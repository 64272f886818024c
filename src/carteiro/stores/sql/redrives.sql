-- name: redrives_add
-- Adds a redrive. :id; :tenant, '' for all; :wanted; :by; :ramp; :course; :total; :now
INSERT INTO carteiro.redrives (id, tenant, wanted, requester, state, ramp, course, total, started_at, changed_at, version, is_clean)
VALUES (:id, :tenant, :wanted, :by, 'running', :ramp, :course, :total, :now, :now, 1, false);

-- name: redrives_change
-- Stores the state and the course of a redrive if it has the version. :id; :version; :state; :reason; :wanted; :course; :now
UPDATE carteiro.redrives
SET
    state = :state, reason = :reason, wanted = :wanted, course = :course, changed_at = :now,
    version = version + 1
WHERE id = :id AND version = :version;

-- name: redrives_clean
-- Marks a redrive that has no items. :id
UPDATE carteiro.redrives SET is_clean = true WHERE id = :id;

-- name: redrives_due
-- Running redrives, ended ones with items, and those that were paused or stopped before a time. :abandoned
SELECT {redrive} FROM carteiro.redrives
WHERE NOT is_clean AND (state NOT IN ('paused', 'stopped') OR changed_at <= :abandoned)
ORDER BY id;

-- name: redrives_forget
-- Deletes ended redrives of a tenant, except the newest. :tenant, '' for all; :most
DELETE FROM carteiro.redrives
WHERE
    is_clean AND tenant = :tenant AND id < (
        SELECT min(n.id) FROM (
            SELECT r.id FROM carteiro.redrives AS r
            WHERE r.is_clean AND r.tenant = :tenant
            ORDER BY r.id DESC
            LIMIT :most
        ) AS n
    );

-- name: redrives_list
-- The next redrives, newest first. :at and :id of the last one; :limit
SELECT {redrive} FROM carteiro.redrives
WHERE (started_at, id) < (:at, :id)
ORDER BY started_at DESC, id DESC
LIMIT :limit;

-- name: redrives_list_of_tenant
-- The next redrives of a tenant, newest first. :tenant; :at and :id of the last one; :limit
SELECT {redrive} FROM carteiro.redrives
WHERE tenant = :tenant AND (started_at, id) < (:at, :id)
ORDER BY started_at DESC, id DESC
LIMIT :limit;

-- name: redrives_open
-- The number of open redrives, by tenant.
SELECT tenant, count(*) FROM carteiro.redrives
WHERE NOT is_clean AND state IN ('running', 'paused', 'stopped')
GROUP BY tenant;

-- name: redrives_show
-- One redrive. :id
SELECT {redrive} FROM carteiro.redrives WHERE id = :id;

-- name: redrives_watched
-- Items without a result and the states of their messages, longest redriven first. :id; :limit
SELECT i.message_id, i.run, i.at, e.state, e.provider
FROM carteiro.redrive_items AS i
LEFT JOIN carteiro.messages AS m ON m.id = i.message_id
LEFT JOIN carteiro.entries AS e ON e.message_no = m.no
WHERE i.redrive = :id AND i.result IS NULL
ORDER BY i.at, i.message_id
LIMIT :limit;
