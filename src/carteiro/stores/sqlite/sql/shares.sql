-- What tenants may have of the machine. :ids = [id, …]
SELECT t.id, t.stride, t.cap, t.rate_per_second, t.paused OR t.disabled
FROM json_each(:ids) AS i JOIN tenants AS t ON t.id = i.value;
