"""The handlers of processes that are killed, as ``carteiro tickets run --app`` loads them.

Each execution leaves a mark in a file before it begins, and another one when it has succeeded.
"""

import asyncio
import json
import os
from contextlib import suppress
from datetime import timedelta

from carteiro import tickets
from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.consume.counter import RetryCounter
from carteiro.tickets.consume.kafka_log import KafkaLog
from carteiro.tickets.consume.runner import Runner
from carteiro.tickets.dead_letters.publisher import Publisher
from end_to_end.tickets.points import Plan, Points

_SOON = RetryPolicy(max_attempts=3, base=timedelta(milliseconds=20))
_MARKS = os.open(os.environ["TICKET_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_points = Points(Plan.of(os.environ.get("TICKET_PLAN", "")))

_points.around(Runner, "arrived")
for _name in ("counted_up_to", "look", "failed", "ended"):
    _points.around(RetryCounter, _name)
_points.around(Publisher, "publish")
_points.around(KafkaLog, "commit")


@tickets.handler("BUILD", retry=_SOON)
async def build(ticket: tickets.Ticket) -> None:
    """Do as the ticket says: fail a number of times, fail for good, take a while, or go on for ever."""
    _points.reach("handler.asked")
    _mark(ticket, "began")
    while ticket.fields.get("deaf"):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
    await asyncio.sleep(ticket.fields.get("seconds", 0))
    if ticket.attempt <= ticket.fields.get("fails", 0):
        _points.reach("handler.fails")
        raise ConnectionError("away")
    if ticket.fields.get("permanent"):
        raise tickets.Permanent("never")
    _mark(ticket, "done")
    _points.reach("handler.returns")


def _mark(ticket: tickets.Ticket, what: str) -> None:
    """Write at once: a buffer dies with the process."""
    mark = {"id": ticket.id, "attempt": ticket.attempt, "what": what, "at": ticket.record.offset}
    os.write(_MARKS, json.dumps(mark).encode() + b"\n")
