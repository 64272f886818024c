-- Drops a tenant and the last that is its own. The caller holds it, and the lock of the ring. $1 tenant
WITH letters AS (DELETE FROM carteiro.dead_letters WHERE tenant = $1::text),
tags AS (DELETE FROM carteiro.message_tags WHERE tenant = $1::text),
templates AS (DELETE FROM carteiro.templates WHERE tenant = $1::text),
domains AS (DELETE FROM carteiro.sender_domains WHERE tenant = $1::text),
keys AS (DELETE FROM carteiro.access_keys WHERE tenant = $1::text),
counts AS (DELETE FROM carteiro.api_counts WHERE tenant = $1::text),
ready AS (DELETE FROM carteiro.ready WHERE tenant = $1::text),
delayed AS (DELETE FROM carteiro.delayed WHERE tenant = $1::text),
leased AS (DELETE FROM carteiro.leased WHERE tenant = $1::text),
seats AS (DELETE FROM carteiro.seats WHERE tenant = $1::text),
notes AS (DELETE FROM carteiro.notes WHERE tenant = $1::text)
DELETE FROM carteiro.tenants
WHERE id = $1::text;
