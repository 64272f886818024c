"""``carteiro tickets dlq ls | group | show``: read the archive."""

import base64
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import orjson
import typer

from carteiro.cli.documents import document_of, plain
from carteiro.cli.groups import print_groups
from carteiro.cli.options import Limit
from carteiro.cli.paging import print_pages
from carteiro.cli.printing import Column
from carteiro.cli.tickets.dlq.session import ArchiveSession, Choice, at_the_archive
from carteiro.tickets.archive.document import UNSETTLED, Archived, ArchiveState, GroupBy, dumped
from carteiro.tickets.archive.redrive import fields_of, own_text
from carteiro.tickets.dead_letters.envelope import OVERSIZED

InState = Annotated[ArchiveState | None, typer.Option("--state", help="State in the archive.")]
_MOST_SHOWN = 500  # bytes that are not a ticket


def _reasons(ticket: Archived) -> str:
    return ticket.reason if ticket.missing is None else f"{ticket.reason}, {OVERSIZED}"


COLUMNS: tuple[Column[Archived], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("type", lambda row: row.type),
    Column("error", lambda row: row.error_type),
    Column("why", lambda row: row.error),
    Column("reason", _reasons),
    Column("failures", lambda row: row.failures),
    Column("deaths", lambda row: row.deaths),
    Column("state", lambda row: row.state, is_whole=True),
    Column("archived", lambda row: row.processed_at, is_whole=True),
)
_OCCURRENCES: tuple[Column[Mapping[str, Any]], ...] = (
    Column("died", lambda row: row.get("published_at"), is_whole=True),
    Column("error", lambda row: row.get("error_type")),
    Column("why", lambda row: row.get("original_error")),
    Column("failures", lambda row: row.get("retry_count")),
    Column("was at", lambda row: row.get("source")),
)
_HISTORY: tuple[Column[Mapping[str, Any]], ...] = (
    Column("at", lambda row: row.get("at"), is_whole=True),
    Column("what", lambda row: row.get("what")),
    Column("by", lambda row: row.get("by")),
    Column("why", lambda row: row.get("why")),
    Column("run", lambda row: row.get("run")),
)


@at_the_archive
async def ls(
    session: ArchiveSession, *, choice: Choice, state: InState = None, limit: Limit = 50
) -> None:
    """List archived dead tickets, newest first."""
    wanted = choice.wanted(states=None if state is None else (state,))
    asked = partial(session.archive.find, wanted)
    await print_pages(session.out, asked, COLUMNS, summary, what="dead tickets", limit=limit)


@at_the_archive
async def group(
    session: ArchiveSession,
    *,
    by: Annotated[GroupBy, typer.Option(help="Field to group by.")] = "error_type",
    state: InState = None,
    choice: Choice,
) -> None:
    """Count archived dead tickets by a field, the largest group first.

    Without --state, republished and done tickets are not counted, except with --by state.
    """
    unasked = None if by == "state" else UNSETTLED
    wanted = choice.wanted(states=unasked if state is None else (state,))
    groups = await session.archive.group(by, wanted)
    print_groups(session.out, by, groups, what="dead tickets")


@at_the_archive
async def show(
    session: ArchiveSession,
    ticket: Annotated[str, typer.Argument(metavar="ID", help="The ticket.")],
) -> None:
    """Show one dead ticket: its content, its deaths and its history."""
    found = await session.known_ticket(ticket)
    session.out.thing(_whole(found), _facts(found))
    session.out.beside("Deaths", found.occurrences, _OCCURRENCES)
    session.out.beside("History", found.history, _HISTORY)


def summary(ticket: Archived) -> dict[str, Any]:
    """Return the fields of a ticket in a list, for programs."""
    return {
        "ticketId": ticket.id,
        "taskType": ticket.type,
        "state": ticket.state,
        "reason": ticket.reason,
        "oversized": ticket.missing is not None,
        "errorType": ticket.error_type,
        "originalError": ticket.error,
        "retryCount": ticket.failures,
        "deaths": ticket.deaths,
        "redrives": ticket.redrives,
        "source": ticket.source,
        "publishedAt": plain(ticket.published_at),
        "processedAt": plain(ticket.processed_at),
    }


def _whole(ticket: Archived) -> dict[str, Any]:
    return summary(ticket) | {
        "ticket": _exact(ticket),
        "raw": None if ticket.raw is None else base64.b64encode(ticket.raw).decode(),
        "missing": None if ticket.missing is None else document_of(ticket.missing),
        "dlqMetadata": _readable(ticket.metadata),
        "occurrences": plain(list(ticket.occurrences)),
        "history": plain(list(ticket.history)),
    }


def _exact(ticket: Archived) -> Any:  # noqa: ANN401 - whatever a ticket says
    """Return its fields, with every digit of its numbers where its bytes are kept; they stay one line."""
    told, own = _readable(fields_of(ticket)), own_text(ticket)
    return told if told is None or own is None else orjson.Fragment(b" ".join(own.splitlines()))


def _readable(fields: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 - whatever a ticket says
    """Return the part that JSON can express: documents of other writers may hold more."""
    told = None if fields is None else dumped(fields)
    return None if told is None else orjson.loads(told)


def _facts(ticket: Archived) -> dict[str, object]:
    return {
        "id": ticket.id,
        "type": ticket.type,
        "state": ticket.state,
        "reason": _reasons(ticket),
        "error": f"{ticket.error_type}: {ticket.error}",
        "failures": ticket.failures,
        "deaths": ticket.deaths,
        "redrives": ticket.redrives,
        "died": ticket.published_at,
        "archived": ticket.processed_at,
        "was at": ticket.source,
        "ticket": _shown(ticket),
    }


def _shown(ticket: Archived) -> str:
    fields = fields_of(ticket)
    if fields is not None:
        told = dumped(fields)
        if told is None:
            return "nested too deeply to be shown"
        return (own_text(ticket) or told).decode()
    if ticket.missing is not None:
        return f"{ticket.missing.size_bytes} bytes, too large to be kept: {_where(ticket.source)}"
    return "not kept" if ticket.raw is None else _bytes_shown(ticket.raw)


def _bytes_shown(raw: bytes) -> str:
    """As much as tells what it may be; the printer escapes what a terminal would obey."""
    said = f"{len(raw)} bytes that are not a ticket"
    start = raw[:_MOST_SHOWN].decode("utf-8", "backslashreplace")
    end = f"… (the first {_MOST_SHOWN})" if len(raw) > _MOST_SHOWN else ""
    return f"{said}: {start}{end}" if raw else said


def _where(place: str) -> str:
    topic, _, rest = place.partition("|")
    partition, _, offset = rest.partition("|")
    return f"on {topic}, partition {partition}, offset {offset}, for as long as that topic keeps it"
