"""The ticket lane: work that arrives on a Kafka topic, with retries, dead letters and redrive.

The Kafka log is this lane's ledger and queue: no store is used. What it shares with the rest is how
failures are judged, when they are tried again, and how they are reported.
"""

from carteiro.tickets.consume.handlers import Permanent, Tickets, handler
from carteiro.tickets.ticket import Ticket

__all__ = ["Permanent", "Ticket", "Tickets", "handler"]
