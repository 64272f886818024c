"""Spans of tickets: one for each execution, below the span that their headers name."""

from dataclasses import replace

from carteiro.observability.tracing import Tracing
from carteiro.tickets.consume.handlers import Handler, Tickets
from carteiro.tickets.ticket import Ticket


def traced(tickets: Tickets, tracing: Tracing) -> Tickets:
    """The same handlers, each within a span."""
    found = Tickets()
    for each in tickets:
        found.add(_traced(each, tracing))
    return found


def _traced(handler: Handler, tracing: Tracing) -> Handler:
    function = handler.function

    async def handle(ticket: Ticket) -> object:
        record = ticket.record
        with tracing.ticket(record.place, ticket.type, ticket.attempt, record.headers):
            return await function(ticket)

    return replace(handler, function=handle)
