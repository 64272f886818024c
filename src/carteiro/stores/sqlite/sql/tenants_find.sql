-- The tenants with these ids. :ids = [id, …]
SELECT
    t.id, t.name, t.tier, t.weight, t.cap, t.rate_per_second, t.paused, t.disabled, t.default_from, t.from_domains,
    t.allowed_networks, t.limits, t.retry_preset, t.external_id_is_key
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;
