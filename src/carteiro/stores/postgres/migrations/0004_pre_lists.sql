-- What lists and gauges are found by.

-- Open attempts are found by their jobs: all that are leased, and those that were before. An index of entries that have a
-- hold would be written by every declare, and with it every other index of the row.
CREATE INDEX ready_again ON carteiro.ready (tenant, message_no) WHERE claims > 0;
CREATE INDEX delayed_again ON carteiro.delayed (tenant, message_no) WHERE claims > 0;

-- The seats as the next claim will find them: what notes tell of is counted in.
CREATE VIEW carteiro.seats_and_notes AS
SELECT
    kind, tenant, sum(jobs)::bigint AS jobs, coalesce(min(lowest), 0) AS lowest, min(due_from) AS due_from
FROM (
    SELECT kind, tenant, jobs, lowest, due_from FROM carteiro.seats
    UNION ALL
    SELECT kind, tenant, jobs, rank, wake_at
    FROM carteiro.unseen_notes()
    WHERE kind <> ''
) AS told
GROUP BY kind, tenant;

-- Whether a dead letter is what is looked for; null matches all. The text is looked for in code, reason and address,
-- whatever the case of its ASCII letters.
CREATE FUNCTION carteiro.is_wanted(
    d carteiro.dead_letters, p_tenant text, p_kind text, p_reason text, p_code text, p_category text,
    p_is_redriven boolean, p_text text
) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT
        (p_tenant IS NULL OR d.tenant = p_tenant) AND (p_kind IS NULL OR d.kind = p_kind)
        AND (p_reason IS NULL OR d.reason = p_reason) AND (p_code IS NULL OR d.code = p_code)
        AND (p_category IS NULL OR d.category = p_category)
        AND (p_is_redriven IS NULL OR (d.redriven_at IS NOT NULL) = p_is_redriven)
        AND (
            p_text IS NULL OR strpos(lower(d.code), p_text) > 0
            OR strpos(lower((carteiro.readable(d.failure::text) ->> 'reason') COLLATE "C"), p_text) > 0
            OR strpos(
                lower((SELECT m.to_address FROM carteiro.messages AS m WHERE m.no = d.message_no)), p_text
            ) > 0
        )
$$;
