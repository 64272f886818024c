# ruff: noqa: INP001 - it is mounted as a module of its own
"""Handlers of the ticket lane in compose.yaml: replace them with your own."""

import sys

from carteiro.tickets import Permanent, Ticket, Tickets

tickets = Tickets()


@tickets.handler("BUILD")
async def build(ticket: Ticket) -> None:
    """Say what would be built."""
    if "commit" not in ticket.fields:
        raise Permanent("a build needs a commit")
    sys.stdout.write(f"build {ticket.fields['commit']} for {ticket.id}\n")
    sys.stdout.flush()
