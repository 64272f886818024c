-- name: alerts_put
-- Stores alerts. :rows = [[name, subject, tenant, state, value, threshold, since, seen_at, changed_at, notice, notice_at, by], …]
INSERT INTO carteiro.alerts ({alert})
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::text[], :rows_4::double precision[],
    :rows_5::double precision[], :rows_6::bigint[], :rows_7::bigint[], :rows_8::bigint[], :rows_9::text[],
    :rows_10::bigint[], :rows_11::text[]
)
ON CONFLICT (name, subject) DO UPDATE
SET tenant = excluded.tenant, state = excluded.state, value = excluded.value, threshold = excluded.threshold,
    since = excluded.since, seen_at = excluded.seen_at, changed_at = excluded.changed_at, told = excluded.told,
    told_at = excluded.told_at, acknowledged_by = excluded.acknowledged_by;

-- name: notices_put
-- Stores notices, except known ones. :rows = [[id, channel, tenant, at, due_at, tries, error, document], …]
INSERT INTO carteiro.notices (id, channel, tenant, at, due_at, tries, error, document)
SELECT *
FROM unnest(
    :rows_0::text[], :rows_1::text[], :rows_2::text[], :rows_3::bigint[], :rows_4::bigint[], :rows_5::integer[],
    :rows_6::text[], :rows_7::text[]
)
ON CONFLICT (id, channel) DO NOTHING;
