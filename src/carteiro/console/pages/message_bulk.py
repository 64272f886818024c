"""Redriving or cancelling all messages that a search finds: their number and a sample first."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from starlette.responses import Response

from carteiro.api.key_ring import name_of
from carteiro.api.refusal import bad_value
from carteiro.console.message_search import Matches, asked_in, count, filter_of, ids_of
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import (
    DEAD,
    FINISHED,
    CancelAnswer,
    MessageFilter,
    RedriveAnswer,
    StoredMessage,
    TenantId,
)
from carteiro.ports import Backend
from carteiro.runtime.messages import note_cancel

_CANCEL = "POST /admin/v1/messages/{id}/cancel"
_REDRIVE = "POST /admin/v1/dead-letters/redrive"
_PATIENCE_S = 10.0  # the longest time of one request, as in the API
_AT_ONCE: Final = 50

Act = Callable[[Sequence[StoredMessage]], Awaitable[int]]


def _is_dead(message: StoredMessage) -> bool:
    return message.state in DEAD


def _is_open(message: StoredMessage) -> bool:
    return message.state not in FINISHED and message.cancel_requested_at is None


_FITS = {"redrive": _is_dead, "cancel": _is_open}


class MessageBulkPages(Pages):
    """Pages about all matches of a search."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @Show("messages/bulk", needs=_CANCEL)
    async def preview(self, visit: Visit) -> Response:
        """The number of matches, and some of them. What comes later does not belong to it."""
        asked = asked_in(visit, visit.query)
        what = visit.query.get("do", "redrive")
        if what not in _FITS:
            raise bad_value("do", "should be redrive or cancel")
        until = datetime.now(UTC)
        wanted = _until(filter_of(asked), until)
        counted = await count(Matches(self._backend.reading, wanted, _FITS[what]))
        return visit.page(
            "messages_bulk.html",
            asked=asked,
            counted=counted,
            until=until.isoformat(),
            what=what,
            is_redrive=what == "redrive",
        )

    @Change("messages/bulk/redrive", needs=_REDRIVE, confirms="messages.sure_redrive_all")
    async def redrive(self, visit: Visit) -> Response:
        """Redrive the dead ones of the matches, at once."""
        by = name_of(visit.request)

        async def act(rows: Sequence[StoredMessage]) -> int:
            answers = await self._backend.dead_letters.redrive(ids_of(rows), by=by)
            return answers.count(RedriveAnswer.REDRIVEN)

        return await self._act(visit, "redrive", act)

    @Change("messages/bulk/cancel", needs=_CANCEL, confirms="messages.sure_cancel_all")
    async def cancel(self, visit: Visit) -> Response:
        """Cancel those of the matches that are not finished."""
        return await self._act(visit, "cancel", self._cancelled)

    async def _cancelled(self, rows: Sequence[StoredMessage]) -> int:
        tenants: dict[TenantId, list[StoredMessage]] = defaultdict(list)
        for each in rows:
            await note_cancel(self._backend.audit, each)
            tenants[each.tenant].append(each)
        done = 0
        for tenant, own in tenants.items():
            answers = await self._backend.store.cancel(ids_of(own), tenant=tenant)
            done += sum(
                each in {CancelAnswer.CANCELLED, CancelAnswer.REQUESTED} for each in answers
            )
        return done

    async def _act(self, visit: Visit, what: str, act: Act) -> Response:
        """Act on the matches, until all are done or it takes too long."""
        asked = asked_in(visit, visit.form)
        wanted = _until(filter_of(asked), _time_in(visit.form.get("until", "")))
        matches = Matches(self._backend.reading, wanted, _FITS[what])
        done, is_late, end = 0, False, time.monotonic() + _PATIENCE_S
        while not (matches.is_over or is_late):
            rows = await matches.next()
            for at in range(0, len(rows), _AT_ONCE):
                done += await act(rows[at : at + _AT_ONCE])
            is_late = time.monotonic() > end
        is_whole = not is_late and matches.reached is None
        flash = f"messages.done_{what}" if is_whole else f"messages.done_{what}_more"
        return visit.to(asked.list_address, flash=flash, number=visit.words.number(done))


def _until(wanted: MessageFilter, until: datetime) -> MessageFilter:
    """The filter, without messages that came later than the preview."""
    return replace(wanted, created_before=min(until, wanted.created_before or until))


def _time_in(given: str) -> datetime:
    try:
        until = datetime.fromisoformat(given)
    except ValueError:
        until = None
    if until is None or until.tzinfo is None:
        raise bad_value("until", "is missing: begin at the list of messages")
    return until
