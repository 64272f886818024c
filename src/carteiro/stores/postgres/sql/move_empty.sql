-- Takes away what a move that was taken back had carried over.
TRUNCATE
carteiro.tenants, carteiro.tiers, carteiro.sender_domains, carteiro.access_keys, carteiro.recipient_records, carteiro.messages,
carteiro.entries, carteiro.contents, carteiro.events, carteiro.message_tags, carteiro.dead_letters,
carteiro.idempotency_keys, carteiro.api_counts, carteiro.templates, carteiro.inbox, carteiro.overrides,
carteiro.suppressions,
carteiro.ring_clock, carteiro.seats, carteiro.ready, carteiro.delayed, carteiro.leased, carteiro.notes,
carteiro.leads,
carteiro.queue_rows, carteiro.queue_changes;
