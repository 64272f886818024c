-- Writes every table anew, and as small as it can be, one after the other; whoever needs it waits meanwhile.
VACUUM (FULL, ANALYZE)
    carteiro.access_keys, carteiro.api_counts, carteiro.contents, carteiro.dead_letters, carteiro.delayed,
    carteiro.entries, carteiro.events, carteiro.idempotency_keys, carteiro.inbox, carteiro.leads, carteiro.leased,
    carteiro.message_tags, carteiro.messages, carteiro.notes, carteiro.overrides, carteiro.ready,
    carteiro.recipient_records, carteiro.ring, carteiro.ring_clock, carteiro.seats, carteiro.sender_domains,
    carteiro.templates, carteiro.tenants, carteiro.tiers;
