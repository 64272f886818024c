-- name: accept
-- Adds messages with their jobs: see the function of that name. :content: joined by :mark
SELECT o_item, o_why, o_created_at, o_recipient_id, o_request_id
FROM carteiro.accept(
    :due_at::text::bigint[], string_to_array(:content, :mark), :tag_item::text::integer[], :tag::text::text[], :now,
    {accepted_given}
);

-- name: accept_counts
-- Message counts of tenants, in the latest window of each length. :tenants = [tenant, …]
SELECT tenant, window_ms, starts_at, count FROM carteiro.api_counts WHERE tenant = ANY (:tenants::text[]);

-- name: accept_keys
-- Answers of idempotency keys that were made after a moment. :keys = [[tenant, key], …]; :after
SELECT k.tenant, k.key, k.digest, k.message_id, k.recipient_id, k.request_id, k.created_at
FROM unnest(:keys_0::text[], :keys_1::text[]) AS a (tenant, key)
JOIN LATERAL (
    SELECT * FROM carteiro.idempotency_keys AS i WHERE i.tenant = a.tenant AND i.key = a.key OFFSET 0
) AS k ON true
WHERE k.created_at > :after;

-- name: accept_known
-- The known ones of these ids. :ids
SELECT id, created_at, recipient_id, request_id FROM carteiro.messages WHERE id = ANY (ARRAY(SELECT unnest(:ids::text[])));

-- name: accept_lock
-- Locks keys, counts and recipients until the transaction ends. :numbers = [number, …], sorted
INSERT INTO carteiro.door_locks (name)
SELECT name FROM unnest(:numbers::bigint[]) AS name
ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE false; -- locks the row, and changes nothing

-- name: accept_nothing
-- Fails wherever an accept would: on a read-only server, for a role without the right, during a move.
DELETE FROM carteiro.messages WHERE false

-- name: accept_rows
-- Shows messages in the table queue. Arrays: $1 message id; $2 user; $3 most retries
INSERT INTO carteiro.queue_rows (id, message_no, tenant, user_id, max_retries)
SELECT m.id::uuid, m.no, m.tenant, r.user_id, r.max_retries
FROM unnest($1::text[], $2::uuid[], $3::integer[]) AS r (id, user_id, max_retries)
CROSS JOIN LATERAL (SELECT n.id, n.no, n.tenant FROM carteiro.messages AS n WHERE n.id = r.id LIMIT 1) AS m
ON CONFLICT DO NOTHING;

-- name: accept_save_counts
-- Stores message counts of tenants; a new window replaces the row of the past one.
-- :rows = [[tenant, window_ms, starts_at, count], …]
INSERT INTO carteiro.api_counts (tenant, window_ms, starts_at, count)
SELECT * FROM unnest(:rows_0::text[], :rows_1::bigint[], :rows_2::bigint[], :rows_3::bigint[])
ON CONFLICT (tenant, window_ms) DO UPDATE SET starts_at = excluded.starts_at, count = excluded.count;

-- name: accept_save_keys
-- Stores idempotency keys of new messages; replaces expired ones.
-- :rows = [[tenant, key, digest, message id, recipient id, request id], …]; :now
INSERT INTO carteiro.idempotency_keys (tenant, key, digest, message_id, recipient_id, request_id, created_at)
SELECT a.tenant, a.key, a.digest, a.message_id, a.recipient_id, a.request_id, :now
FROM unnest(:rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[])
    AS a (tenant, key, digest, message_id, recipient_id, request_id)
ON CONFLICT (tenant, key) DO UPDATE
SET digest = excluded.digest, message_id = excluded.message_id, recipient_id = excluded.recipient_id,
    request_id = excluded.request_id, created_at = excluded.created_at;

-- name: accept_tenants
-- The known ones of these tenants, and whether they are disabled. :ids = [tenant, …]
SELECT id, disabled FROM carteiro.tenants WHERE id = ANY (:ids::text[]);

-- name: recipient_known
-- Finds a recipient of a tenant: by external id, else by document (one that has no other external id).
-- :tenant; :external_id; :cpf_cnpj_hash
(
    SELECT id FROM carteiro.recipient_records
    WHERE tenant = :tenant AND external_id = :external_id AND deleted_at IS NULL
)
UNION ALL
(
    SELECT id FROM carteiro.recipient_records
    WHERE
        tenant = :tenant AND cpf_cnpj_hash = :cpf_cnpj_hash AND deleted_at IS NULL
        AND (:external_id::text IS NULL OR external_id IS NULL)
    ORDER BY id
    LIMIT 1
)
LIMIT 1;

-- name: recipients_meet
-- The ids of recipients, in order; new ones are added: see the function `meet`.
-- :rows = [[id if it is new, tenant, email, external id, document, company name, name], …]; :now
SELECT carteiro.meet(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::text[], :rows_5::text[], :rows_6::text[], :now
);
