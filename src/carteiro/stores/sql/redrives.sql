-- name: redrives_add
-- Adds a redrive. :id; :tenant, '' for all; :wanted; :by; :ramp; :course; :total; :now; :provider, of an automatic one
INSERT INTO carteiro.redrives (
    id, tenant, wanted, requester, state, ramp, course, total, started_at, changed_at, version, is_clean, provider
)
VALUES (:id, :tenant, :wanted, :by, 'running', :ramp, :course, :total, :now, :now, 1, false, :provider);

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
-- Running redrives, ended ones with items, automatic ones that stopped, and those that were paused or stopped before a time:
-- :abandoned, and of tenants :abandoned_of_tenant
SELECT {redrive} FROM carteiro.redrives
WHERE NOT is_clean AND (
        state NOT IN ('paused', 'stopped') OR (state = 'stopped' AND provider IS NOT NULL)
        OR changed_at <= CASE tenant WHEN '' THEN :abandoned::bigint ELSE :abandoned_of_tenant::bigint END
    )
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

-- name: redrives_forget_unknown
-- Deletes ended redrives of names that are no tenant, except the newest. :most
DELETE FROM carteiro.redrives
WHERE
    is_clean AND tenant > '' AND tenant NOT IN (SELECT id FROM carteiro.tenants) AND id < (
        SELECT min(n.id) FROM (
            SELECT r.id FROM carteiro.redrives AS r
            WHERE r.is_clean AND r.tenant > '' AND r.tenant NOT IN (SELECT t.id FROM carteiro.tenants AS t)
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
-- The number of open redrives that somebody started, by tenant.
SELECT tenant, count(*) FROM carteiro.redrives
WHERE NOT is_clean AND provider IS NULL AND state IN ('running', 'paused', 'stopped')
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

-- name: redrives_drop (sqlite)
-- Deletes items of a redrive. :id; :limit
DELETE FROM redrive_items
WHERE (redrive, message_id) IN (
    SELECT i.redrive, i.message_id FROM redrive_items AS i WHERE i.redrive = :id LIMIT :limit
);

-- name: redrives_drop (postgres)
-- Deletes items of a redrive. :id; :limit
DELETE FROM carteiro.redrive_items
WHERE ctid = ANY (ARRAY(SELECT i.ctid FROM carteiro.redrive_items AS i WHERE i.redrive = :id LIMIT :limit));

-- name: redrives_held (sqlite)
-- Those of the messages whose tenant is paused or disabled. :ids = [message id, …]
SELECT m.id
FROM json_each(:ids) AS i CROSS JOIN messages AS m ON m.id = i.value JOIN tenants AS t ON t.id = m.tenant
WHERE t.paused OR t.disabled;

-- name: redrives_held (postgres)
-- Those of the messages whose tenant is paused or disabled. :ids = [message id, …]
SELECT m.id
FROM carteiro.messages AS m JOIN carteiro.tenants AS t ON t.id = m.tenant
WHERE m.id = ANY (:ids::text[]) AND (t.paused OR t.disabled);

-- name: redrives_forget_items
-- Deletes items of the redrives of a tenant. :tenant; :limit
DELETE FROM carteiro.redrive_items
WHERE (redrive, message_id) IN (
    SELECT i.redrive, i.message_id
    FROM carteiro.redrives AS r CROSS JOIN carteiro.redrive_items AS i
    WHERE r.tenant = :tenant AND i.redrive = r.id
    LIMIT :limit
);

-- name: redrives_judge (sqlite)
-- Stores results of items. :id; :rows = [[message id, result], …]
UPDATE redrive_items
SET result = r.result
FROM (SELECT value ->> 0 AS message_id, value ->> 1 AS result FROM json_each(:rows)) AS r
WHERE redrive_items.redrive = :id AND redrive_items.message_id = r.message_id;

-- name: redrives_judge (postgres)
-- Stores results of items. :id; :rows = [[message id, result], …]
UPDATE carteiro.redrive_items AS i
SET result = r.result
FROM unnest(:rows_0::text[], :rows_1::text[]) AS r (message_id, result)
WHERE i.redrive = :id AND i.message_id = r.message_id;

-- name: redrives_known (sqlite)
-- Those of the messages that the redrive has. :id; :ids = [message id, …]
SELECT message_id FROM redrive_items
WHERE redrive = :id AND message_id IN (SELECT value FROM json_each(:ids));

-- name: redrives_known (postgres)
-- Those of the messages that the redrive has. :id; :ids = [message id, …]
SELECT message_id FROM carteiro.redrive_items
WHERE redrive = :id AND message_id = ANY (:ids::text[]);

-- name: redrives_put (sqlite)
-- Adds items. :id; :ids = [message id, …]; :run; :now
INSERT INTO redrive_items (redrive, message_id, run, at)
SELECT :id, value, :run, :now FROM json_each(:ids);

-- name: redrives_put (postgres)
-- Adds items. :id; :ids = [message id, …]; :run; :now
INSERT INTO carteiro.redrive_items (redrive, message_id, run, at)
SELECT :id::text, i.id, :run::integer, :now::bigint FROM unnest(:ids::text[]) AS i (id);

-- name: redrives_take (sqlite)
-- One redrive, which nobody else changes until the transaction ends. :id
SELECT {redrive} FROM redrives WHERE id = :id;

-- name: redrives_take (postgres)
-- One redrive, which nobody else changes until the transaction ends. :id
SELECT {redrive} FROM carteiro.redrives WHERE id = :id FOR UPDATE;
